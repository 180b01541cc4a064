// Package vectors holds what Kopf itself has computed for given inputs, as JSON
// files in testdata, and the test that our code computes the same.
//
// The table in table_test.go says for every file what runs its cases and how
// they are judged. The environment variable GOPF_VECTORS names another folder
// with files of the same names and formats, which are then judged instead:
//
//	GOPF_VECTORS=/path/to/vectors go test -v ./internal/vectors
package vectors
