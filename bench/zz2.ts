import { DatabaseSync } from 'node:sqlite';
import { rmSync, readFileSync } from 'node:fs';
import { run } from '../src/billing/ledger-sqlite-program.ts';
rmSync('/tmp/zz.db', { force: true }); rmSync('/tmp/zz.db-wal', { force: true });
const db = new DatabaseSync('/tmp/zz.db', { readBigInts: true });
db.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=8000; PRAGMA cache_size=-65536');
let ddl = readFileSync('src/store/migrations/0001_ledger.sql', 'utf8'); const v=process.env.V??''; if(v.includes('j')) ddl=ddl.replace('PRIMARY KEY (chain, batch, position)\n);','PRIMARY KEY (chain, batch, position)\n) WITHOUT ROWID;'); if(v.includes('h')) ddl=ddl.replace(/CREATE INDEX locks_held.*/,''); if(v.includes('a')) ddl=ddl.replace(/CREATE INDEX locks_account.*/,''); if(v.includes('l')) ddl=ddl.replace('(resolved_at IS NULL))\n);','(resolved_at IS NULL))\n) WITHOUT ROWID;'); if(v.includes('c')) ddl=ddl.replace(/,\n  CONSTRAINT locks_state[^;]*;/,'\n);'); if(v.includes('s')) db.exec('PRAGMA synchronous=OFF'); if(v.includes('p')) db.exec('PRAGMA wal_autocheckpoint=100000'); db.exec(ddl);
const map = new Map();
const prepare = ({ name, text }) => { let f = map.get(name); if (!f) map.set(name, (f = db.prepare(text.replaceAll(/\$(?=\d)/g, '?')))); return f; };
const batch = (operations) => { db.exec('BEGIN IMMEDIATE'); const r = run(prepare, structuredClone({ chain: 'main', now: Date.now(), operations })); db.exec('COMMIT'); return structuredClone(r); };
for (let a = 0; a < 200; a++) batch([{ kind: 'transfer', request: { id: 'f' + a, from: 'treasury:x', to: 'escrow:bench-' + a, amount: 10n ** 12n, memo: '' } }]);
const N = 512, ROUNDS = Number(process.argv[2] ?? 200);
const t = performance.now(); const c = process.cpuUsage();
for (let r = 0; r < ROUNDS; r++) {
  const locks = [], settles = [];
  for (let i = 0; i < N; i++) {
    const id = `x-${i}-${r}`;
    locks.push({ kind: 'lock', request: { id, account: 'bench-' + ((i + r) % 200), amount: 900n, prices: ['price-0123456789abcdef0123456789abcdef'], expiresAt: Date.now() + 600_000, detail: '{"kind":"chat","service":"demo/model-1","key":"0123456789abcdef","request_id":"0123456789abcdef"}' } });
    settles.push({ kind: 'settle', request: { id, price: 'price-0123456789abcdef0123456789abcdef', provider: 'provider-' + (i % 8), charge: 345n, draw: false, feeBps: 100, usage: '{"prompt":1200,"completion":345}', detail: '{"finish_reason":"stop","latency_ms":812,"stream":true}' } });
  }
  batch(locks); batch(settles);
}
const u = process.cpuUsage(c); const ms = performance.now() - t;
console.log(((N * ROUNDS) / ms * 1000).toFixed(0), 'pairs/s', ((u.user + u.system) / N / ROUNDS).toFixed(1), 'µs CPU/pair');
