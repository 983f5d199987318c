-- Health of an object of tidb-groups for Argo CD. It takes a custom resource without
-- such a check for Healthy as soon as it exists. The script is the same for every kind.
local hs = { status = "Progressing", message = "waiting for its operator" }
local conditions = {}
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
for _, c in ipairs(obj.status.conditions) do
  conditions[c.type] = c
end
local ready, current = conditions.Ready, conditions.UpToDate
if ready == nil or current == nil then
  return hs
end
-- Only what was said of the spec that is there now counts.
local generation = obj.metadata.generation
if generation ~= nil and (ready.observedGeneration ~= generation or current.observedGeneration ~= generation) then
  hs.message = "waiting for its operator to look at generation " .. tostring(generation)
  return hs
end
if conditions.Stalled ~= nil then
  hs.status, hs.message = "Degraded", conditions.Stalled.message
elseif conditions.Paused ~= nil then
  hs.status, hs.message = "Suspended", conditions.Paused.message
elseif ready.reason == "Suspended" then
  hs.status, hs.message = "Suspended", ready.message
elseif current.status ~= "True" then
  -- What a user has paused, a new operator leaves as it was rendered, or a volume cannot become, waits for the user; all else goes on by itself.
  hs.status, hs.message = "Progressing", current.message
  if current.reason == "UpdateHeld" or current.reason == "NewRendering" or current.reason == "VolumeChangePending" then
    hs.status = "Suspended"
  end
elseif ready.status ~= "True" and ready.reason ~= "NotReady" then
  hs.message = ready.message
else
  -- NotReady beside UpToDate is a group that is asked for no members.
  hs.status, hs.message = "Healthy", ready.message
end
return hs
