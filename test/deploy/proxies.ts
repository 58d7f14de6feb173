import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findProgram } from '../support/find-program.ts';
import { findFreePort } from '../support/free-port.ts';
import { createKeeper, type Keeper } from '../support/server-process.ts';

const read = (file: string) => readFileSync(resolve(import.meta.dirname, '../../deploy', file), 'utf8');

/** Every text of `changes` has to be there. */
const replaced = (text: string, changes: Readonly<Record<string, string>>) =>
  Object.entries(changes).reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`the file of deploy/ has no "${from}"`);
    return before.replaceAll(from, to);
  }, text);

/** A proxy with its shipped file, in front of two gateways, on a port without TLS. */
export interface DeployedProxy {
  readonly port: number;
  readonly keeper: Keeper;
}

/** Each takes the `host:port` of two gateways. */
export const PROXIES = { Caddy: startCaddy, nginx: startNginx } as const;

async function startCaddy([first, second]: readonly string[]): Promise<DeployedProxy> {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-caddy-'));
  const port = await findFreePort();
  const file = join(home, 'Caddyfile');
  const site = replaced(read('container/Caddyfile'), {
    '{$GATE_DOMAIN}': `http://:${port}`,
    'gateway-1:8402': first!,
    'gateway-2:8402': second!,
  });
  writeFileSync(file, `{\n  admin off\n}\n${site}`);
  const { keeper, server } = run('caddy', home, ['run', '--config', file, '--adapter', 'caddyfile']);
  await server.wrote('serving initial configuration');
  return { port, keeper };
}

async function startNginx([first, second]: readonly string[]): Promise<DeployedProxy> {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'));
  mkdirSync(join(home, 'temp'));
  const port = await findFreePort();
  const site = replaced(read('nginx/tollgate.conf'), {
    '10.0.0.1:8402': first!,
    '10.0.0.2:8402': second!,
    'listen 443 ssl;': `listen ${port};`,
    'ssl_certificate     /etc/letsencrypt/live/gateway.example/fullchain.pem;': '',
    'ssl_certificate_key /etc/letsencrypt/live/gateway.example/privkey.pem;': '',
    'Host $host;': 'Host $http_host;',
  });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((what) => `${what}_temp_path ${home}/temp/${what};`)
    .join('\n');
  // Started by root it would give its work to a user who may not look into this folder.
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const main = `${user}daemon off;\npid ${home}/pid;\nerror_log stderr notice;\nevents {}\n`;
  writeFileSync(join(home, 'nginx.conf'), `${main}http {\naccess_log off;\n${temporary}\n${site}}\n`);
  const { keeper, server } = run('nginx', home, ['-p', home, '-c', join(home, 'nginx.conf'), '-e', 'stderr']);
  await server.wrote('start worker process ');
  return { port, keeper };
}

function run(program: 'caddy' | 'nginx', home: string, args: readonly string[]) {
  const { file, env } = findProgram(program);
  const keeper = createKeeper([home]);
  return { keeper, server: keeper.start({ file, args, env: { ...env, HOME: home }, cwd: home }) };
}
