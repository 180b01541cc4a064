package p

import "gopf.dev/gopf"

const storageClass = "standard"

var c *gopf.Change[*EphemeralVolumeClaim]
