package diff_test

import (
	"fmt"

	"gopf.dev/gopf/diff"
)

func ExampleOf() {
	old := map[string]any{"spec": map[string]any{"size": "1G", "class": "fast"}}
	new := map[string]any{"spec": map[string]any{"size": "2G", "zone": "a"}}
	for _, item := range diff.Of(old, new) {
		fmt.Println(item.Op, item.Path, item.Old, item.New)
	}
	// Output:
	// add [spec zone] <nil> a
	// remove [spec class] fast <nil>
	// change [spec size] 1G 2G
}

func ExampleDiff_At() {
	created := diff.Of(nil, map[string]any{"spec": map[string]any{"size": "1G"}})
	fmt.Println(created)
	fmt.Println(created.At("spec", "size"))
	// Output:
	// add: {"spec":{"size":"1G"}}
	// add: "1G"
}
