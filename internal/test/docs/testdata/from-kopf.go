package p

import "gopf.dev/gopf"

func newOperator() *gopf.Operator { return gopf.New() }
