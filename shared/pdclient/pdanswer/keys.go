package pdanswer

// Keys is an answer of PD's etcd to a request of a range of keys.
type Keys struct {
	Keys []Key
}

// Key is one key of PD's etcd, without its value.
type Key struct {
	Key         []byte `json:"key"`
	ModRevision int64  `json:"mod_revision,string"`
}

func (a *Keys) total() int64 { return maxAnswer }

func (a *Keys) read(r *reader) error {
	return r.object(func(key string) error {
		if key != "kvs" {
			return r.skip()
		}
		return r.list(maxServers, "keys", func() error {
			var next Key
			if err := r.value(&next); err != nil {
				return err
			}
			a.Keys = append(a.Keys, next)
			return nil
		})
	})
}
