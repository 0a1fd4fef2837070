#include "replay/protocol.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "replay/error.h"

namespace kerncap::replay {

std::string escape(std::string_view text) {
  if (text.empty()) return "-";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == '%' || byte == 0x7f || (text.size() == 1 && c == '-')) {
      char code[4];
      std::snprintf(code, sizeof(code), "%%%02X", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

std::string unescape(std::string_view word) {
  if (word == "-") return "";
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '%' && i + 2 < word.size()) {
      out += static_cast<char>(std::strtoul(std::string(word.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += word[i];
    }
  }
  return out;
}

const std::string& Request::text(std::size_t i) const {
  if (i < arguments.size()) return arguments[i];
  throw ReplayError(ErrorClass::usage, command + ": argument " + std::to_string(i + 1) + " is missing");
}

std::uint64_t Request::number(std::size_t i) const {
  const std::string& word = text(i);
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(word.c_str(), &end, 0);
  if (word.empty() || *end != '\0' || errno != 0 || word[0] == '-') {
    throw ReplayError(ErrorClass::usage, command + ": '" + word + "' is no number");
  }
  return value;
}

double Request::real(std::size_t i) const {
  const std::string& word = text(i);
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0')
    throw ReplayError(ErrorClass::usage, command + ": '" + word + "' is no number");
  return value;
}

bool Request::choice(std::size_t i, const char* yes, const char* no) const {
  const std::string& word = text(i);
  if (word == yes) return true;
  if (word == no) return false;
  throw ReplayError(ErrorClass::usage, command + ": '" + word + "' is neither " + yes + " nor " + no);
}

Channel::Channel() : out_(::dup(STDOUT_FILENO)) {
  if (out_ < 0) {
    out_ = STDOUT_FILENO;  // no descriptor is left: that is still to be told
  } else {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
}

bool Channel::read(Request* request) {
  std::size_t end = pending_.find('\n');
  while (end == std::string::npos) {
    char buffer[65536];
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    const std::size_t from = pending_.size();
    pending_.append(buffer, static_cast<std::size_t>(n));
    end = pending_.find('\n', from);
  }
  const std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  request->command.clear();
  request->arguments.clear();
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t stop = std::min(line.find(' ', at), line.size());
    const std::string word = unescape(std::string_view(line).substr(at, stop - at));
    if (at == 0) {
      request->command = word;
    } else {
      request->arguments.push_back(word);
    }
    at = stop + 1;
  }
  return true;
}

void Channel::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(out_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the client is gone
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Channel::note(const std::string& key, const std::string& text) {
  send("note " + key + " " + escape(text) + "\n");
}

void Channel::data(const std::string& name, const void* bytes, std::uint64_t size) {
  send("data " + name + " " + std::to_string(size) + "\n");
  send({static_cast<const char*>(bytes), size});
}

void Channel::ok(const std::string& values) { send("ok " + values + "\n"); }

void Channel::error(const char* error_class, std::uint64_t address, const std::string& text) {
  send(std::string("error ") + error_class + " " + hex(address) + " " + escape(text) + "\n");
}

}  // namespace kerncap::replay
