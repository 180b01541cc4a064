// Package vectors contains inputs and Kopf's own results for them, as JSON files in
// testdata, and the test that Gopf computes the same results.
//
// The table in table_test.go defines for every file the runner of its cases and the
// comparison. The environment variable GOPF_VECTORS is the path of another folder with
// files of the same names and formats, which are then tested instead:
//
//	GOPF_VECTORS=/path/to/vectors go test -v ./internal/vectors
package vectors
