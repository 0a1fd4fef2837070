// C11: tables of pointers, structures with pointers, a linked list of --nodes (20) nodes.
#include "pointers.h"

#include "program.h"

int main(int argc, char** argv) {
  const int n = 512, rows = 5;
  const long nodes = option(argc, argv, "--nodes", 20);
  hipModule_t module = load("pointers");

  std::vector<const float*> table;
  for (int r = 0; r < rows; ++r)
    table.push_back(device_copy(std::vector<float>(n, static_cast<float>(r + 1))));
  const float* const* device_table = device_copy(table);
  float* sums = device_copy(std::vector<float>(n, -1.0f));
  launch(find(module, "sum_table"), (n + 63) / 64, 64, device_table, sums, rows, n);

  std::vector<Entry> entries;
  std::vector<float*> outputs;
  for (int e = 0; e < 3; ++e) {
    outputs.push_back(device_copy(std::vector<float>(100, 0.0f)));
    const float* bias = e == 1 ? nullptr : device_copy(std::vector<float>(100, 0.5f));
    entries.push_back(
        {device_copy(std::vector<float>(100, 2.0f)), bias, outputs.back(), static_cast<float>(e), 100});
  }
  const Entry* device_entries = device_copy(entries);
  launch(find(module, "run_entries"), 3, 64, device_entries, 3);

  Node* head = nullptr;
  for (long i = 0; i < nodes; ++i) head = device_copy(std::vector<Node>(1, Node{i, {}, head}));
  long* sum = device_copy(std::vector<long>(1, 0));
  launch(find(module, "walk_list"), 1, 64, head, sum);

  const float first = host_copy(sums, n)[n - 1];
  EXPECT(first == 15.0f);
  for (int e = 0; e < 3; ++e) EXPECT(host_copy(outputs[e], 100)[99] == 2.0f * e + (e == 1 ? 0.0f : 0.5f));
  const long total = host_copy(sum, 1)[0];
  EXPECT(total == nodes * (nodes - 1) / 2);
  EXPECT(host_copy(head, 1)[0].value == nodes);
  std::printf("pointers: %.1f %ld\n", first, total);
}
