import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createEgress } from '../../../src/providers/ai-sdk/egress.ts';
import { createPackageLog } from '../../../src/providers/ai-sdk/package-log.ts';
import { startWorker } from '../../../src/providers/ai-sdk/start-worker.ts';

// A file that the gateway has open while it starts a process may stay open there.

/** A package that tells which files it has. */
const SOURCE = `
import fs from 'node:fs';
const open = [];
for (let fd = 3; fd < 64; fd++) try { const stat = fs.fstatSync(fd); if (stat.isFile() || stat.isDirectory()) open.push(fd); } catch {}
throw new Error('it has the files [' + open + ']');
`;

test('a package has no file that was left open', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-left-open-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const at = join(directory, 'node_modules', 'left');
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'package.json'), '{"name":"left","version":"1.0.0","type":"module","exports":"./index.js"}');
  writeFileSync(join(at, 'index.js'), SOURCE);
  const secret = join(directory, 'secret');
  writeFileSync(secret, 'secret');
  const egress = createEgress({ allowPrivate: false });
  onTestFinished(() => egress.close());
  const worker = startWorker({
    target: { kind: 'sdk', sdk: 'left', settings: {}, secrets: {}, directory },
    egress,
    wall: {
      name: 'with files that are open',
      keeps: { files: false, signals: false, network: false },
      why: null,
      launch: ({ args }) => ({
        command: '/bin/sh',
        args: ['-c', 'exec 8<"$0" 9<"${0%/*}"; exec "$@"', secret, process.execPath, ...args],
        cwd: directory,
      }),
    },
    log: createPackageLog(() => {}),
    times: undefined,
  });
  await expect(worker.calls).rejects.toThrow('it has the files []');
  await worker.ended;
});
