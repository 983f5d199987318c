package step

import "sync"

// width bounds how many pieces of work of one object go on at once.
const width = 8

// RunInParallel does independent pieces of work side by side and returns the most
// pressing of their ends. A piece that fails keeps no other from being done.
func RunInParallel(work ...func() Outcome) Outcome {
	ends := make([]Outcome, len(work))
	panics := make([]any, len(work))
	slots := make(chan struct{}, width)
	var all sync.WaitGroup
	for i, do := range work {
		slots <- struct{}{}
		all.Go(func() {
			defer func() {
				panics[i] = recover()
				<-slots
			}()
			ends[i] = do()
		})
	}
	all.Wait()
	for _, p := range panics {
		if p != nil {
			// In the caller's goroutine, where controller-runtime contains it.
			panic(p)
		}
	}
	return Worst(ends...)
}
