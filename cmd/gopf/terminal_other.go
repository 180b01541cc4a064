//go:build !unix

package main

import "os"

// keyByKey does nothing: keys need Enter.
func keyByKey(*os.File) (raw, restore func()) { return func() {}, func() {} }
