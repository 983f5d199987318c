package membership

import "time"

// LookAgain is after how long PD is looked at again although its poller, which
// wakes the group up with every change, said nothing.
const LookAgain = time.Minute

// OrderRetryPeriod is after how long an order to PD is given again whose effect PD
// does not show.
const OrderRetryPeriod = 5 * time.Second
