package pd

// UnreachableStores returns the stores with voters that PD does not hear of and that have regions, if
// they are so many that a region may have lost its majority with them; else nil.
// Placement rules may want fewer replicas of some regions, which are not seen then.
func (v View) UnreachableStores() []Store {
	if v.Err != nil {
		return nil
	}
	var out []Store
	for _, s := range v.Stores {
		if s.LacksProcess() && s.Regions > 0 && !s.HasLearnersOnly() {
			out = append(out, s)
		}
	}
	if len(out)+len(v.ForceRemoved) < v.FatalStoreCount() {
		return nil
	}
	return out
}

// FatalStoreCount is with how many stores a region may lose its majority.
func (v View) FatalStoreCount() int { return max(1, v.MaxReplicas-Majority(v.MaxReplicas)+1) }

// LacksMajority reports whether the voters of a region on stores that PD hears of are no
// majority.
func (v View) LacksMajority(r Region) bool {
	voters, alive := 0, 0
	for _, p := range r.Peers {
		if !p.Voter {
			continue
		}
		voters++
		if s, listed := v.Store(p.StoreID); listed && !p.Down && !s.LacksProcess() {
			alive++
		}
	}
	return voters > 0 && alive < Majority(voters)
}
