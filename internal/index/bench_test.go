package index

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// many is the size on which lookups and updates must not depend.
const many = 100_000

// shapes are the distributions of entries over keys.
var shapes = map[string]func(i int) string{
	"all under one key": func(int) string { return "key" },
	"a key for each":    func(i int) string { return fmt.Sprintf("key-%d", i) },
}

// bench is an index with the list of its objects. The list is contiguous in memory
// while the index is scattered.
type bench struct {
	*Index[string, string]
	objects, keys []string
}

func filled(size int, key func(i int) string) bench {
	x := bench{New[string, string](), make([]string, size), make([]string, size)}
	object := func(i int) string { return fmt.Sprintf("6f1c2b1e-0000-4000-8000-%012d", i) }
	for i := range size {
		x.Put(object(i), map[string]string{key(i): object(i)})
	}
	for i, n := range rand.Perm(size) {
		x.objects[i], x.keys[i] = object(n), key(n)
	}
	return x
}

// each runs a benchmark for both shapes.
func each(b *testing.B, size int, run func(b *testing.B, x bench)) {
	for name, key := range shapes {
		b.Run(fmt.Sprintf("%d %s", size, name), func(b *testing.B) {
			x := filled(size, key)
			b.ReportAllocs()
			b.ResetTimer()
			run(b, x)
		})
	}
}

func BenchmarkHas(b *testing.B) {
	each(b, many, func(b *testing.B, x bench) {
		for i := 0; b.Loop(); i++ {
			x.Has(x.keys[i%many])
		}
	})
}

func BenchmarkCount(b *testing.B) {
	each(b, many, func(b *testing.B, x bench) {
		for i := 0; b.Loop(); i++ {
			x.Count(x.keys[i%many])
		}
	})
}

func BenchmarkOne(b *testing.B) {
	each(b, many, func(b *testing.B, x bench) {
		for i := 0; b.Loop(); i++ {
			x.One(x.keys[i%many])
		}
	})
}

// BenchmarkGetStart looks up a key and starts a loop.
func BenchmarkGetStart(b *testing.B) {
	each(b, many, func(b *testing.B, x bench) {
		for i := 0; b.Loop(); i++ {
			for range x.Get(x.keys[i%many]) {
				break
			}
		}
	})
}

func BenchmarkCountInParallel(b *testing.B) {
	each(b, many, func(b *testing.B, x bench) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				x.Count(x.keys[i%many])
			}
		})
	})
}

// BenchmarkIterate makes one step of a loop over all values.
func BenchmarkIterate(b *testing.B) {
	each(b, many, func(b *testing.B, x bench) {
		for n := 0; n < b.N; {
			for range x.All() {
				if n++; n == b.N {
					break
				}
			}
		}
	})
}

// BenchmarkUpdate changes the value of a known object under the same key.
func BenchmarkUpdate(b *testing.B) {
	for _, size := range []int{100, many} {
		each(b, size, func(b *testing.B, x bench) {
			values := map[string]string{}
			for i := 0; b.Loop(); i++ {
				n := i % size
				clear(values)
				values[x.keys[n]] = "another"
				x.Put(x.objects[n], values)
			}
		})
	}
}

// BenchmarkRemoveAndAdd removes an object and adds it again.
func BenchmarkRemoveAndAdd(b *testing.B) {
	for _, size := range []int{100, many} {
		each(b, size, func(b *testing.B, x bench) {
			values := map[string]string{}
			for i := 0; b.Loop(); i++ {
				n := i % size
				x.Remove(x.objects[n])
				clear(values)
				values[x.keys[n]] = "another"
				x.Put(x.objects[n], values)
			}
		})
	}
}

// BenchmarkMemory measures the memory of an entry without the user's strings.
func BenchmarkMemory(b *testing.B) {
	for name, key := range shapes {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				from := filled(many, key)
				before := heap()
				x := New[string, string]()
				for i := range many {
					x.Put(from.objects[i], map[string]string{from.keys[i]: from.objects[i]})
				}
				b.ReportMetric(float64(heap()-before)/many, "B/entry")
				runtime.KeepAlive(x)
				runtime.KeepAlive(from)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
