package engine

import "slices"

// addLanes adds lanes that do not run yet, and returns them.
func (p *pool) addLanes(n int) []*lane {
	before := len(p.lanes)
	for range n {
		p.lanes = append(p.lanes, newLane(p, int(p.node.laneNumbers.Add(1))-1))
	}
	return p.lanes[before:]
}

// startLanes lets lanes run.
func (p *pool) startLanes(lanes []*lane) {
	for _, l := range lanes {
		p.node.lanesRunning.Add(1)
		go l.run()
	}
}

// setLanes makes the pool have n lanes. Surplus lanes end when they are free.
func (p *pool) setLanes(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.laneCount.Store(int32(n))
	if more := n - len(p.lanes); more > 0 {
		p.startLanes(p.addLanes(more))
	}
	for fewer := len(p.lanes) - n; fewer > 0 && len(p.free) > 0; fewer-- {
		p.wakeLane()
	}
}

// nodeLanes returns how many lanes the node is to have, in this pool and others.
func (p *pool) nodeLanes() int {
	if p.shared {
		return int(p.laneCount.Load())
	}
	return p.node.cfg.Lanes
}

// dismiss reports whether the lane, which is free, is surplus, and forgets it if so.
func (p *pool) dismiss(l *lane) bool {
	if len(p.lanes) <= int(p.laneCount.Load()) {
		return false
	}
	at := slices.Index(p.lanes, l)
	p.lanes = slices.Delete(p.lanes, at, at+1)
	p.wakeLanes() // it may have been woken for a batch
	return true
}

// wakeLane wakes a lane that waits.
func (p *pool) wakeLane() {
	last := len(p.free) - 1
	l := p.free[last]
	p.free = p.free[:last]
	l.woken = true
	p.woken++
	signal(l.wake)
}

// wakeAll wakes all lanes.
func (p *pool) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		signal(l.wake)
	}
}
