package connlimit

import "net"

// shortBody is the longest body that is never refused because of [Connections.Unread]. The number
// of requests bounds the memory of short ones. Most reviews are shorter.
const shortBody = 16 << 10

// hold counts bytes of a body that may arrive before the handler of a request reads them. ok is
// false if there is no room for them: the request must be refused.
func (c *Connections) hold(conn net.Conn, bytes int) (ok bool) {
	for {
		victim, ok := c.tryHold(conn, bytes)
		if victim == nil {
			return ok
		}
		_ = victim.Close() // it is gone in any case
	}
}

// tryHold is hold. If a connection must be closed first, it is returned, and counts no longer.
func (c *Connections) tryHold(conn net.Conn, bytes int) (victim net.Conn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.open[conn]
	if own == nil {
		return nil, true // it was closed
	}
	own.used = true
	if c.Unread == 0 || bytes <= shortBody || c.unread+bytes <= c.Unread {
		c.count(own, bytes)
		return nil, true
	}
	most := own.peer
	for host, p := range c.peers {
		if p.unread > c.peers[most].unread {
			most = host
		}
	}
	if most == own.peer {
		return nil, false
	}
	for other, one := range c.open {
		if one.peer == most && (victim == nil || one.unread > c.open[victim].unread) {
			victim = other
		}
	}
	c.remove(victim)
	return victim, false
}

// drop counts bytes no longer: they were read, or the request has ended.
func (c *Connections) drop(conn net.Conn, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own := c.open[conn]; own != nil {
		c.count(own, -bytes)
	}
}

// count changes the bytes of a connection. The lock must be held.
func (c *Connections) count(own *connection, bytes int) {
	own.unread += bytes
	c.peers[own.peer].unread += bytes
	c.unread += bytes
}
