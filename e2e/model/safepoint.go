package model

import (
	"slices"
	"time"
)

// GCWorker is the service whose safe point never expires.
const GCWorker = "gc_worker"

// GCSafePoint is the point below which old versions may be dropped.
func (c *Cluster) GCSafePoint() uint64 {
	c.lock()
	defer c.mu.Unlock()
	return c.st.GCSafePoint
}

// UpdateGCSafePoint moves the safe point forward, never back, and returns it.
func (c *Cluster) UpdateGCSafePoint(to uint64) (uint64, error) {
	c.lock()
	defer c.mu.Unlock()
	if to <= c.st.GCSafePoint {
		return c.st.GCSafePoint, nil
	}
	c.st.GCSafePoint = to
	return to, c.save()
}

// ServiceSafePoints returns the safe points of services that have not expired.
func (c *Cluster) ServiceSafePoints() []ServiceSafePoint {
	c.lock()
	defer c.mu.Unlock()
	c.expire()
	return slices.Clone(c.st.SafePoints)
}

// UpdateServiceSafePoint sets the safe point of a service for a time, or drops
// it when ttl is 0 or less. It returns the lowest of all; a service that asks for
// less than that is not heard.
func (c *Cluster) UpdateServiceSafePoint(service string, ttl time.Duration, to uint64) (ServiceSafePoint, error) {
	c.lock()
	defer c.mu.Unlock()
	c.expire()
	lowest, any := c.lowestSafePoint()
	i := slices.IndexFunc(c.st.SafePoints, func(p ServiceSafePoint) bool { return p.ServiceID == service })
	switch {
	case ttl <= 0:
		if i >= 0 {
			c.st.SafePoints = slices.Delete(c.st.SafePoints, i, i+1)
		}
	case any && to < lowest.SafePoint:
		return lowest, nil
	default:
		const never = int64(9223372036854775807)
		expires := never
		if service != GCWorker && ttl < time.Duration(never) {
			expires = c.now().Add(ttl).Unix()
		}
		p := ServiceSafePoint{ServiceID: service, ExpiredAt: expires, SafePoint: to}
		if i >= 0 {
			c.st.SafePoints[i] = p
		} else {
			c.st.SafePoints = append(c.st.SafePoints, p)
		}
	}
	lowest, _ = c.lowestSafePoint()
	return lowest, c.save()
}

func (c *Cluster) expire() {
	now := c.now().Unix()
	c.st.SafePoints = slices.DeleteFunc(c.st.SafePoints, func(p ServiceSafePoint) bool { return p.ExpiredAt < now })
}

func (c *Cluster) lowestSafePoint() (ServiceSafePoint, bool) {
	if len(c.st.SafePoints) == 0 {
		return ServiceSafePoint{ServiceID: GCWorker, ExpiredAt: 9223372036854775807}, false
	}
	return slices.MinFunc(c.st.SafePoints, func(a, b ServiceSafePoint) int {
		switch {
		case a.SafePoint < b.SafePoint:
			return -1
		case a.SafePoint > b.SafePoint:
			return 1
		default:
			return 0
		}
	}), true
}

// GlobalConfig returns configuration that clients share through PD, by name.
func (c *Cluster) GlobalConfig() map[string]string {
	c.lock()
	defer c.mu.Unlock()
	out := make(map[string]string, len(c.st.GlobalConfig))
	for k, v := range c.st.GlobalConfig {
		out[k] = v
	}
	return out
}

// SetGlobalConfig sets or, with a nil value, removes shared configuration.
func (c *Cluster) SetGlobalConfig(items map[string]*string) error {
	c.lock()
	defer c.mu.Unlock()
	for k, v := range items {
		if v == nil {
			delete(c.st.GlobalConfig, k)
			continue
		}
		c.st.GlobalConfig[k] = *v
	}
	return c.save()
}

// ExternalTimestamp is the timestamp that stale readers were told to use.
func (c *Cluster) ExternalTimestamp() uint64 {
	c.lock()
	defer c.mu.Unlock()
	return c.st.ExternalTS
}

// SetExternalTimestamp sets the timestamp for stale readers; it never falls.
func (c *Cluster) SetExternalTimestamp(ts uint64) error {
	c.lock()
	defer c.mu.Unlock()
	if ts < c.st.ExternalTS {
		return badInput("the external timestamp should be larger than now")
	}
	c.st.ExternalTS = ts
	return c.save()
}
