// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
	"github.com/flowgate/flowgate/portstatus"
)

var (
	_ portstatus.DB = (*vswitchdb.DB)(nil)
	_ conntrack.DB  = (*vswitchdb.DB)(nil)
)
