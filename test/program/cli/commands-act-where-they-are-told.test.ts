import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { freshDatabase, type FreshDatabase } from '../../support/fresh-database.ts';
import { makePlace, type Place } from './tollgate.ts';

const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';
/** Nobody listens there. */
const NOWHERE = 'postgres://someone:hunter2-password@127.0.0.1:1/doesnotexist';

let place: Place;
let database: FreshDatabase;
beforeEach(async () => {
  place = await makePlace();
  database = await freshDatabase(inject('postgresUrl'));
});
afterEach(async () => {
  await place.clear();
  await database.drop();
});

const COMMANDS: readonly (readonly string[])[] = [
  ['audit'],
  ['account', 'create', 'victim'],
  ['account', 'list'],
  ['account', 'show', 'acme'],
  ['account', 'credit', 'acme', '25'],
  ['key', 'create', 'acme'],
  ['key', 'list', 'acme'],
  ['key', 'disable', 'acme', '00'],
];
const accounts = async (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  (
    JSON.parse((await place.run(['account', 'list', '--json', ...args], env)).stdout) as {
      id: string;
      balance_usd: string;
    }[]
  ).map(({ id, balance_usd }) => `${id.replace('tollgate:local:', '')} ${balance_usd}`);
const stderrOf = ({ output, stdout }: { output: string; stdout: string }) => output.replace(stdout, '');

describe('a database that is named', () => {
  it('is the one that every command acts on, whatever runs here', async () => {
    await place.gateway(['serve']);
    await place.run(['account', 'create', 'acme']);
    await writeFile(join(place.dir, 'prod.toml'), `[database]\nurl = "${NOWHERE}"\n`);
    const ways: (readonly [args: readonly string[], env: NodeJS.ProcessEnv])[] = [
      [[], { DATABASE_URL: NOWHERE }],
      [['--config', 'prod.toml'], {}],
      [[], { TOLLGATE_CONFIG: 'prod.toml' }],
      [['--data', place.data], { DATABASE_URL: NOWHERE }],
    ];
    for (const [index, command] of COMMANDS.entries()) {
      // Every command with one way, the first with all.
      for (const [args, env] of index === 0 ? ways : [ways[index % ways.length]!]) {
        const result = await place.run([...command, ...args], env);
        const what = `${command.join(' ')} ${args.join(' ')} ${Object.keys(env).join(' ')}`;
        expect.soft(result.code, what).toBe(command[0] === 'audit' ? 2 : 1);
        expect.soft(result.stdout, what).toBe('');
        expect
          .soft(stderrOf(result), what)
          .toContain('on PostgreSQL postgres://127.0.0.1:1/doesnotexist, data directory');
        expect.soft(stderrOf(result), what).toMatch(/The gateway at http:\S+ uses another one and is not asked/);
        expect.soft(stderrOf(result), what).toMatch(/database 127\.0\.0\.1:1\/doesnotexist .*cannot be used/);
        expect.soft(result.output, what).not.toContain('hunter2-password');
      }
    }
    expect(await accounts([])).toEqual(['acme 0']);
  });

  it('is found by a file whose secrets of services and chains are not in the environment', async () => {
    const file = join(place.dir, 'gate.toml');
    await writeFile(
      file,
      `[server]\ndata_dir = "${place.data}"\n[alerts]\nurl = "std::env::ALERTS"\n` +
        `[[chains]]\nnetwork = "eip155:8453"\nrpc_url = "https://rpc.example"\nprivate_key = "std::env::TREASURY"\n` +
        `[[models]]\nname = "shop/m"\ndisplay_name = "Shop: M"\nprovider_name = "Shop"\n[models.pricing]\nprompt = 1\ncompletion = 1\n` +
        `[models.params]\nmodel = "m"\napi_base = "http://127.0.0.1:9/v1"\napi_key = "std::env::SHOP_KEY"\n`,
    );
    expect((await place.run(['account', 'create', 'acme', '-c', file])).code).toBe(0);
    const made = await place.run(['key', 'create', 'acme', '--allow', 'shop/m', '-c', file]);
    expect([made.code, made.output]).toEqual([0, expect.not.stringContaining('No service has the name')]);
    expect((await place.run(['audit', '-c', file])).code).toBe(0);
    // A start needs them all.
    const start = await place.run(['serve', '--validate', '-c', file]);
    expect([start.code, start.output]).toEqual([1, expect.stringContaining('SHOP_KEY, which is not set')]);
    await writeFile(file, '[database]\nurl = "std::env::BOOKS"\n');
    const lost = await place.run(['account', 'list', '-c', file]);
    expect([lost.code, lost.output]).toEqual([1, expect.stringContaining('BOOKS, which is not set')]);
  });

  it('is reached through the gateway that uses it, and by itself where none does', async () => {
    const env = { DATABASE_URL: database.url };
    await place.run(['account', 'create', 'first'], env);
    const gateway = await place.gateway(['serve'], env);
    const { base_url } = await place.read('gateway.json');
    // Without the variable too: the directory names the gateway, and the gateway its database.
    for (const each of [env, {}]) {
      const result = await place.run(['account', 'credit', 'first', '1'], each);
      expect(result.code).toBe(0);
      expect(stderrOf(result)).toContain(`At ${base_url}, on PostgreSQL postgres://`);
    }
    gateway.signal('SIGTERM');
    await gateway.exited;
    expect(await accounts([], env)).toEqual(['first 2']);
    const audit = await place.run(['audit'], env);
    expect(audit).toMatchObject({ code: 0, stdout: expect.stringContaining('The books are right.') });
    expect(stderrOf(audit)).toContain('Directly on PostgreSQL');
  });
});

describe('a data directory', () => {
  it('that was copied while its gateway ran is not taken for that gateway', async () => {
    await place.gateway(['serve']);
    await place.run(['account', 'create', 'acme']);
    const copy = join(place.dir, 'copy');
    await cp(place.data, copy, { recursive: true });
    const credit = await place.run(['account', 'credit', 'acme', '25', '--data', copy]);
    expect(credit.code).toBe(0);
    expect(stderrOf(credit)).toContain(
      `Directly on the embedded database in ${copy}. Its gateway.json is a copy from ${place.data} and is not used`,
    );
    expect(await accounts([])).toEqual(['acme 0']);
    expect(await accounts(['--data', copy])).toEqual(['acme 25']);

    await writeFile(join(copy, 'tollgate.db'), 'garbage');
    expect(await place.run(['audit', '--data', copy])).toMatchObject({
      code: 2,
      output: expect.stringContaining('cannot be opened'),
    });
  });

  it('is not left to a process that has the number of a gateway that is gone', async () => {
    const gateway = await place.gateway(['serve']);
    const file = await place.read('gateway.json');
    gateway.signal('SIGKILL');
    await gateway.exited;
    // This process lives, and began at another time.
    await writeFile(join(place.data, 'gateway.json'), JSON.stringify({ ...file, pid: process.pid }));
    const result = await place.run(['account', 'list']);
    expect(result.code).toBe(0);
    expect(stderrOf(result)).toContain(`Directly on the embedded database in ${place.data}`);
  });

  it('that a file only has by default, and another gateway runs on, is refused', async () => {
    await place.gateway(['start'], { TOLLGATE_DATA: '' });
    await writeFile(join(place.dir, 'prod.toml'), '[billing]\nfee_bps = 1\n');
    for (const command of COMMANDS) {
      const result = await place.run([...command, '--config', 'prod.toml'], { TOLLGATE_DATA: '' });
      expect.soft(result.code, command.join(' ')).toBe(command[0] === 'audit' ? 2 : 1);
      expect
        .soft(result.output, command.join(' '))
        .toMatch(/was started with no configuration file, not with prod\.toml/);
    }
    expect(
      await place.run(['account', 'list', '--config', 'prod.toml', '--data', '.tollgate'], { TOLLGATE_DATA: '' }),
    ).toMatchObject({ code: 0 });
  });
});

describe('an address', () => {
  it('with a password is refused, and the password is not shown', async () => {
    const result = await place.run(['account', 'list', '--url', 'http://user:hunter2-password@127.0.0.1:9']);
    expect(result).toMatchObject({
      code: 1,
      stdout: '',
      output: expect.stringContaining('--url contains a user or a password'),
    });
    expect(result.output).not.toContain('hunter2-password');
  });

  it('is refused beside something else that is named as strongly, and wins over what is named less strongly', async () => {
    await place.gateway(['serve'], { TOLLGATE_ADMIN_KEY: ADMIN_KEY });
    const { base_url } = await place.read('gateway.json');
    const other = join(place.dir, 'other');
    await place.run(['account', 'create', 'elsewhere'], { TOLLGATE_DATA: other });
    const admin = { TOLLGATE_ADMIN_KEY: ADMIN_KEY };
    const refused: (readonly [args: readonly string[], env: NodeJS.ProcessEnv, says: string])[] = [
      [['--url', base_url!, '--data', other], {}, `--data names the data directory ${other}`],
      [['--data', other], { TOLLGATE_URL: base_url }, `--data names the data directory ${other}`],
      [[], { TOLLGATE_URL: base_url, TOLLGATE_DATA: other }, `TOLLGATE_DATA names the data directory ${other}`],
      [
        [],
        { TOLLGATE_URL: base_url, DATABASE_URL: NOWHERE },
        'DATABASE_URL names the database postgres://127.0.0.1:1/doesnotexist',
      ],
      [[], { TOLLGATE_URL: 'http://127.0.0.1:9', TOLLGATE_DATA: place.data }, 'TOLLGATE_DATA names the data directory'],
    ];
    for (const [args, env, says] of refused) {
      const result = await place.run(['account', 'credit', 'elsewhere', '25', ...args], { ...admin, ...env });
      expect.soft(result, says).toMatchObject({ code: 1, stdout: '', output: expect.stringContaining(says) });
      expect.soft(result.output, says).toMatch(/names the gateway at http:.*\nLeave one of them out\./);
      expect.soft(result.output).not.toContain('hunter2-password');
    }
    const wins = await place.run(['account', 'create', 'here', '--url', base_url!], {
      ...admin,
      DATABASE_URL: NOWHERE,
      TOLLGATE_DATA: other,
    });
    expect(wins.code).toBe(0);
    expect(stderrOf(wins)).toContain(`At ${base_url}\n`);
    expect(await accounts([])).toEqual(['here 0']);
    expect(await accounts([], { TOLLGATE_DATA: other })).toEqual(['elsewhere 0']);
  });
});

describe('a gateway', () => {
  it('says what it is on before it starts, and leaves standard output to its log', async () => {
    const serve = await place.gateway(['serve'], { DATABASE_URL: database.url });
    expect(serve.output()).toMatch(/^Serves on PostgreSQL postgres:\/\/\S+, data directory /);
    expect(serve.stdout()).not.toContain('Serves on');
    serve.signal('SIGTERM');
    await serve.exited;
    const start = await place.gateway(['start'], { TOLLGATE_DATA: join(place.dir, 'dev') });
    expect(start.output()).toContain(`Starts on the embedded database in ${join(place.dir, 'dev')}`);
  });
});
