package question_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/question"
)

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func TestSoManyMembersAreCalledAtOnceAndNewsWakesTheirGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, running, most := question.NewQueue(2), 0, 0
		for n, news := range []bool{true, false, true, false} {
			go q.Run(t.Context(), named(string(rune('a'+n))), func(context.Context) bool {
				running++
				most = max(most, running)
				<-time.After(time.Second)
				running--
				return news
			})
		}
		<-time.After(3 * time.Second)
		assert.Equal(t, 2, most)
		woken := []string{(<-q.Answers()).Object.GetName(), (<-q.Answers()).Object.GetName()}
		assert.ElementsMatch(t, []string{"a", "c"}, woken)
		assert.Empty(t, q.Answers())
	})
}

func TestNoCallBeginsWhenTheOperatorEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := question.NewQueue(1)
	q.Run(ctx, named("a"), func(ctx context.Context) bool {
		cancel()
		q.Run(ctx, named("b"), func(context.Context) bool { panic("it has no slot") })
		return true
	})
}

func TestAGroupWaitsForFirstAnswersForAWhile(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	f := question.NewFirstAnswers(time.Second)
	for _, c := range []struct {
		after         time.Duration
		missing, wait bool
	}{{0, true, true}, {time.Second / 2, true, true}, {time.Second, true, false}, {2 * time.Second, false, false}, {3 * time.Second, true, true}} {
		assert.Equal(t, c.wait, f.MustWait(named("a"), c.missing, begin.Add(c.after)), c.after)
	}
	assert.False(t, f.MustWait(named("a"), true, begin.Add(time.Minute)))
	f.Forget(named("a"))
	assert.True(t, f.MustWait(named("a"), true, begin.Add(time.Minute)))
}
