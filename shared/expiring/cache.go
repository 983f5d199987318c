package expiring

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Cache keeps values for a time, so many at most. Its methods may be used concurrently.
// The cache that it rests on drops an expired value when it is asked for, which what belongs to
// a deleted object never is.
type Cache struct {
	values *cache.LRUExpireCache
	keeps  time.Duration

	mu    sync.Mutex
	swept time.Time
}

// New returns an empty cache.
func New(most int, keeps time.Duration) *Cache {
	return &Cache{values: cache.NewLRUExpireCache(most), keeps: keeps, swept: time.Now()}
}

// Get returns a value that has not expired.
func (c *Cache) Get(key any) (any, bool) { return c.values.Get(key) }

// Remove drops a value.
func (c *Cache) Remove(key any) { c.values.Remove(key) }

// Add keeps a value, and drops those that have expired, once in a while.
func (c *Cache) Add(key, value any) {
	c.values.Add(key, value, c.keeps)
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.swept) < c.keeps/4 {
		return
	}
	c.swept = time.Now()
	current := sets.New(c.values.Keys()...)
	c.values.RemoveAll(func(key any) bool { return !current.Has(key) })
}
