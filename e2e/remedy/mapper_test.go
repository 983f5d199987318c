package remedy

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func TestMap(t *testing.T) {
	root, _ := binaries.Root()
	all, _ := Printed(root)
	seen := map[string]map[string]int{}
	for _, log := range strings.Split(os.Getenv("LOGS"), ",") {
		f, err := os.Open(log)
		if err != nil {
			continue
		}
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<24)
		name := ""
		for sc.Scan() {
			l := sc.Text()
			if strings.HasPrefix(l, "ok ") || strings.HasPrefix(l, "FAILED ") {
				name = strings.Fields(l)[1]
			}
			if m, ok := strings.CutPrefix(l, "       tells: "); ok {
				for _, x := range all {
					p, _ := Pattern(x.Format)
					if p.MatchString(m) {
						if seen[x.Format] == nil {
							seen[x.Format] = map[string]int{}
						}
						seen[x.Format][name]++
					}
				}
			}
		}
	}
	n := 0
	for _, x := range all {
		var s []string
		for k := range seen[x.Format] {
			s = append(s, k)
		}
		sort.Strings(s)
		if len(s) > 0 {
			n++
		}
		fmt.Printf("%d\t%s\t%q\t%s\n", len(s), x.File, x.Format, strings.Join(s, " "))
	}
	fmt.Println(n, "of", len(all))
}
