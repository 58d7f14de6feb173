import { readFileSync } from 'node:fs';
import { loadConfig } from '#config';
import { createApp } from '../../../src/program/app/app.ts';
import { createPaperChain } from '../../support/paper-chain.ts';

// A gateway in its own process that takes payments of a simulated chain: `paper-gateway.ts <toml> <data> <admin key>`.
// It prints its address, and ends when its input does.

const [file = '', dataDir = '', adminKey = ''] = process.argv.slice(2);
const chain = createPaperChain();
const config = loadConfig({
  file,
  text: readFileSync(file, 'utf8'),
  env: { TOLLGATE_ADMIN_KEY: adminKey, TEST_UPSTREAM_KEY: 'sk-test' },
  mode: 'production',
  overrides: { 'server.data_dir': dataDir, 'server.port': 0, 'server.host': '127.0.0.1' },
});
const app = await createApp(config, { payments: chain.payments, writeLog: () => {} });
chain.credit(app.ledger);
const { url } = await app.listen();
process.stdout.write(`${url}\n`);
process.stdin.resume();
process.stdin.once('end', () => process.exit(0));
