import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, matchesGlob, resolve } from 'node:path';
import { expect, it } from 'vitest';

const CHECKOUT = resolve(import.meta.dirname, '../..');
const ignored = readFileSync(join(CHECKOUT, '.dockerignore'), 'utf8').trim().split('\n');

/** The instructions of the Dockerfile, in lines of their own, by stage. */
const [build = [], image = []]: readonly (readonly string[])[] = readFileSync(
  join(CHECKOUT, 'deploy/container/Dockerfile'),
  'utf8',
)
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n/g, ' ')
  .split(/^(?=FROM )/m)
  .map((stage) => stage.trim().split('\n'));

it('copies files that are in the context, those that say which packages it fetches first', () => {
  const copied = build.filter((line) => line.startsWith('COPY ')).map((line) => line.split(' ').slice(1, -1));
  expect(copied).toEqual([['package.json', 'package-lock.json', '.npmrc'], ['.']]);
  expect(build.indexOf('RUN npm ci')).toBe(build.indexOf('COPY . .') - 1);
  for (const path of copied.flat()) {
    expect.soft(existsSync(join(CHECKOUT, path)), path).toBe(true);
    expect
      .soft(
        ignored.some((pattern) => matchesGlob(path, pattern)),
        path,
      )
      .toBe(false);
  }
  expect(ignored).toEqual(expect.arrayContaining(['.git', '.tollgate', 'node_modules', 'deploy/container/secrets']));
});

it('runs as a user that owns its data and no program', () => {
  const place = (start: string): number => image.findIndex((line) => line.startsWith(start));
  expect(image.filter((line) => line.startsWith('USER '))).toEqual(['USER node']);
  expect(image[place('RUN ')]).toContain('install -d -o node -g node -m 0700 /data');
  // Before that the user is root: a volume takes the owner that its folder has by then.
  expect(place('RUN ')).toBeLessThan(place('USER '));
  expect(place('RUN ')).toBeLessThan(place('VOLUME /data'));
  expect(image.filter((line) => /--chown|--chmod/.test(line))).toEqual([]);
});

it('is healthy where the gateway is ready, and only there', async () => {
  const command = JSON.parse(
    image.find((line) => line.startsWith('HEALTHCHECK '))!.replace(/^.*? CMD /, ''),
  ) as string[];
  let status = 200;
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(status).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const check = async (): Promise<number> => {
    const child = spawn(process.execPath, command.slice(1), { env: { PORT: String(port) }, stdio: 'inherit' });
    const [code] = await once(child, 'exit');
    return code;
  };
  try {
    expect(await check()).toBe(0);
    status = 503;
    expect(await check()).toBe(1);
    expect(asked).toEqual(['/health/ready', '/health/ready']);
  } finally {
    server.close();
  }
  expect(await check()).toBe(1);
});
