import { EventEmitter, once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPerson } from './person.ts';

/**
 * A home folder for programs, with a browser that they can open as usual, and a person who answers in it at once. The
 * browser is `xdg-open`, and the value of BROWSER.
 */
export interface Desk {
  readonly home: string;
  /** PATH has nothing but the folder of the browser and `path`. */
  readonly env: Readonly<Record<string, string>>;
  /** What the person says to the next pages. */
  says: 'yes' | 'no';
  /** Addresses that programs have opened, oldest first. */
  readonly opened: readonly string[];
  /** Resolves when a program has got its next answer. */
  answered(): Promise<unknown>;
  close(): Promise<void>;
}

/** `origin`: of the gateway. `key`: the person's own. `path`: what programs find besides the browser. */
export async function startDesk(origin: string, key: string, path = ''): Promise<Desk> {
  const home = await mkdtemp(join(tmpdir(), 'tollgate-desk-'));
  const opened: string[] = [];
  const visits: Promise<unknown>[] = [];
  const answers = new EventEmitter();
  const visit = async (address: string): Promise<void> => {
    const person = createPerson(origin, key);
    const page = await person.open(address);
    const callback = desk.says === 'yes' ? await person.allow(page) : await person.refuse(page);
    // Some programs listen only after they have opened the browser, where a person is slower. Others do no more.
    for (let tries = 0; tries < 50; tries += 1) {
      if ((await fetch(callback).catch(() => null)) !== null) break;
      await sleep(50);
    }
    answers.emit('answer');
  };
  const server = createServer((request, response) => {
    response.end();
    const address = new URL(request.url!, origin).searchParams.get('url')!;
    opened.push(address);
    visits.push(visit(address).catch((error: unknown) => process.stderr.write(`${String(error)}\n`)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const bin = join(home, 'bin');
  const browser = join(bin, 'xdg-open');
  await mkdir(bin);
  const open = `fetch("http://127.0.0.1:${port}/?url=" + encodeURIComponent(process.argv[1]))`;
  await writeFile(browser, `#!/bin/sh\nexec '${process.execPath}' -e '${open}' "$1"\n`);
  await chmod(browser, 0o755);
  const desk: Desk = {
    home,
    env: { HOME: home, PATH: [bin, path].filter(Boolean).join(delimiter), BROWSER: browser },
    says: 'yes',
    opened,
    answered: () => once(answers, 'answer'),
    async close() {
      await Promise.all(visits);
      server.closeAllConnections();
      server.close();
      await rm(home, { recursive: true, force: true });
    },
  };
  return desk;
}
