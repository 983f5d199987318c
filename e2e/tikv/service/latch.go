package service

import "sync"

// latches lets one request at a time decide on a key, of all regions of the store.
type latches struct {
	mu   sync.Mutex
	held map[uint64]chan struct{}
}

// acquire takes the latches of keys, given by their sorted hashes.
func (l *latches) acquire(hashes []uint64) {
	for _, h := range hashes {
		for {
			l.mu.Lock()
			wait, taken := l.held[h]
			if !taken {
				l.held[h] = make(chan struct{})
			}
			l.mu.Unlock()
			if !taken {
				break
			}
			<-wait
		}
	}
}

func (l *latches) release(hashes []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range hashes {
		if wait, taken := l.held[h]; taken {
			close(wait)
			delete(l.held, h)
		}
	}
}
