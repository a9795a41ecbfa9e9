// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/flowgate/flowgate/ofctrl/vswitchdb/internal/jsonrpc"
)

// database is the name of the database, and of our one monitor of it.
const database = "Open_vSwitch"

// connection is one connection from dial to end. It returns why it ended.
//
// The monitor's reply is the first picture, and each later update changes it.
// Both come in the order of the wire on the goroutine that reads, and
// ovsdb-server sends what a transaction changed before its result
// (ovsdb/jsonrpc-server.c:ovsdb_jsonrpc_session_send): after any transaction of
// ours, the picture is at least as new as that.
func (db *DB) connection(ctx context.Context) error {
	nc, err := db.addr.connect(ctx, db.o)
	if err != nil {
		return db.failed("connect", err)
	}
	p := newPicture()
	complete := false
	conn := jsonrpc.New(nc, jsonrpc.Options{
		ProbeInterval: max(db.o.ProbeInterval, 0),
		DeadInterval:  max(db.o.DeadInterval, 0),
		Notify: func(method string, params json.RawMessage) error {
			if method != "update2" || !complete {
				return nil
			}
			return db.update(p, params)
		},
	})
	_, err = conn.Go(ovsdb.ConditionalMonitorRPC, monitorArgs(), func(rows json.RawMessage, err error) {
		if err == nil {
			_, err = p.apply(rows)
		}
		if err != nil {
			conn.Close(fmt.Errorf("monitor: %w", err))
			return
		}
		complete = true
		db.up(conn, p)
	})
	if err != nil {
		conn.Close(err)
	}
	return db.failed("connection", conn.Run(ctx))
}

func monitorArgs() []any {
	requests := make(map[string]ovsdb.MonitorRequest, len(monitored))
	for table, columns := range monitored {
		requests[table] = ovsdb.MonitorRequest{Columns: columns, Select: ovsdb.NewDefaultMonitorSelect()}
	}
	return ovsdb.NewMonitorArgs(database, database, requests)
}

// update applies an update2 notification: [monitor, updates].
func (db *DB) update(p *picture, params json.RawMessage) error {
	var args []json.RawMessage
	if err := json.Unmarshal(params, &args); err != nil || len(args) != 2 {
		return fmt.Errorf("%w: update2 with parameters %.80q", ErrMalformed, params)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	before, _ := p.curCfg()
	changes, err := p.apply(args[1])
	if err != nil {
		return err
	}
	for _, change := range changes {
		for r := range db.readers[change.bridge] {
			r.tell(change)
		}
	}
	if after, _ := p.curCfg(); after != before {
		db.announce()
	}
	return nil
}

// up makes a connection with its first picture the present one.
func (db *DB) up(conn *jsonrpc.Conn, p *picture) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.conn, db.picture = conn, p
	db.status = Status{Connected: true, Since: time.Now()}
	for bridge, readers := range db.readers {
		for r := range readers {
			r.resync(p.on[bridge])
		}
	}
	db.announce()
	db.o.Logger.WithField("addr", db.addr.text).Info("vswitchdb: connected")
}

// lost says that there is no connection any more, or still none. It reports
// whether that is news.
func (db *DB) lost(err error) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	isNew := db.status.Connected || db.status.Err == nil
	if db.status.Connected {
		db.status = Status{Since: time.Now(), Received: db.conn.Received()}
	}
	db.status.Err = err
	db.conn, db.picture = nil, nil
	for _, readers := range db.readers {
		for r := range readers {
			r.disconnected(err)
		}
	}
	db.announce()
	return isNew
}

// watch registers a reader of a bridge's rows.
func (db *DB) watch(bridge string) (*reader, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, ErrClosed
	}
	r := newReader()
	switch {
	case db.picture != nil:
		r.resync(db.picture.on[bridge])
	case db.status.Err != nil:
		r.disconnected(db.status.Err)
	}
	if db.readers[bridge] == nil {
		db.readers[bridge] = make(map[*reader]struct{})
	}
	db.readers[bridge][r] = struct{}{}
	return r, nil
}

func (db *DB) unwatch(bridge string, r *reader) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if delete(db.readers[bridge], r); len(db.readers[bridge]) == 0 {
		delete(db.readers, bridge)
	}
}
