package pdapi

import (
	"net/http"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func (s *Server) ruleRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/config/rules", s.ruled(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		replyJSON(w, http.StatusOK, c.Rules(""))
	}))
	mux.HandleFunc("GET /pd/api/v1/config/rules/group/{group}", s.ruled(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		replyJSON(w, http.StatusOK, c.Rules(r.PathValue("group")))
	}))
	mux.HandleFunc("GET /pd/api/v1/config/rule/{group}/{id}", s.ruled(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		rule, ok := c.Rule(r.PathValue("group"), r.PathValue("id"))
		if !ok {
			replyJSON(w, http.StatusNotFound, nil)
			return
		}
		replyJSON(w, http.StatusOK, rule)
	}))
	mux.HandleFunc("POST /pd/api/v1/config/rule", s.ruled(setRule))
	mux.HandleFunc("DELETE /pd/api/v1/config/rule/{group}/{id}", s.ruled(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		if err := c.DeleteRule(r.PathValue("group"), r.PathValue("id")); err != nil {
			replyError(w, err)
			return
		}
		replyJSON(w, http.StatusOK, "Delete rule successfully.")
	}))
	mux.HandleFunc("POST /pd/api/v1/config/rule_group", s.ruled(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		var g model.RuleGroup
		if !tryDecode(w, r, &g) {
			return
		}
		if err := c.SetRuleGroup(g); err != nil {
			replyError(w, err)
			return
		}
		replyJSON(w, http.StatusOK, "Update rule group successfully.")
	}))
	mux.HandleFunc("GET /pd/api/v1/config/rule_groups", s.ruled(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		groups := []model.RuleGroup{}
		for _, b := range c.RuleBundles() {
			groups = append(groups, b.Group)
		}
		replyJSON(w, http.StatusOK, groups)
	}))
	mux.HandleFunc("GET /pd/api/v1/config/placement-rule", s.ruled(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		out := []map[string]any{}
		for _, b := range c.RuleBundles() {
			out = append(out, map[string]any{
				"group_id": b.Group.ID, "group_index": b.Group.Index, "group_override": b.Group.Override, "rules": b.Rules,
			})
		}
		replyJSON(w, http.StatusOK, out)
	}))
	mux.HandleFunc("GET /pd/api/v1/config/region-label/rules", s.bootstrapped(func(w http.ResponseWriter, _ *http.Request, _ *model.Cluster) {
		replyJSON(w, http.StatusOK, []any{})
	}))
}

// ruled is bootstrapped for what needs placement rules. PD refuses it while they
// are off; that answer is not recorded, it is taken from PD's server/api/rule.go.
func (s *Server) ruled(h func(http.ResponseWriter, *http.Request, *model.Cluster)) http.HandlerFunc {
	return s.bootstrapped(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		if !c.HasPlacementRules() {
			replyJSON(w, http.StatusPreconditionFailed, "placement rules feature is disabled")
			return
		}
		h(w, r, c)
	})
}

func setRule(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	var rule model.Rule
	if !tryDecode(w, r, &rule) {
		return
	}
	switch rule.Role {
	case "voter", "leader", "follower", "learner":
	default:
		replyJSON(w, http.StatusBadRequest, "[PD:placement:ErrRuleContent]invalid rule content, invalid role "+rule.Role)
		return
	}
	if err := c.SetRule(rule); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "Update rule successfully.")
}
