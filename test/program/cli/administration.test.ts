import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ServerProcess } from '../../support/server-process.ts';
import { makePlace, type Place } from './tollgate.ts';

let place: Place;
const arrange = async () => {
  place = await makePlace();
};
const clear = () => place.clear();
const ADMIN_KEY = 'an-admin-key-of-the-test-0123456789';

const json = async (...args: string[]): Promise<unknown> => JSON.parse((await place.run([...args, '--json'])).stdout);

describe('the commands of the administration, beside a gateway', () => {
  let gateway: ServerProcess;
  beforeAll(async () => {
    await arrange();
    gateway = await place.gateway(['serve'], { TOLLGATE_ADMIN_KEY: ADMIN_KEY });
  });
  afterAll(clear);

  it('talk to the gateway that runs on the data directory', async () => {
    expect(await json('account', 'create', 'acme', '--label', 'Acme Ltd')).toMatchObject({
      id: 'tollgate:local:acme',
      label: 'Acme Ltd',
    });
    expect((await place.run(['account', 'credit', 'acme', '25.5', '--reference', 'invoice-1'])).output).toContain(
      '25.5 USD to tollgate:local:acme',
    );
    const repeated = await place.run(['account', 'credit', 'acme', '25.5', '--reference', 'invoice-1']);
    expect(repeated).toMatchObject({ code: 0, output: expect.stringContaining('Nothing was added') });
    expect(await json('account', 'show', 'tollgate:local:acme')).toMatchObject({
      balance_usd: '25.5',
      total_credits_micro_usdc: 25_500_000,
    });
    expect((await place.run(['account', 'list'])).output).toMatch(/tollgate:local:acme +Acme Ltd +25\.5 +0 /);

    const made = await place.run([
      'key',
      'create',
      'acme',
      '--name',
      'laptop',
      '--limit',
      '5',
      '--limit-reset',
      'monthly',
      '--allow',
      'a/b',
      'c/*',
      '--allow=-c/d',
    ]);
    expect(made.stdout).toMatch(/^svc-sk-v2-[1-9A-HJ-NP-Za-km-z]+\n/);
    const [key] = (await json('key', 'list', 'acme')) as { hash: string }[];
    expect(key).toMatchObject({
      name: 'laptop',
      limit: 5,
      limit_reset: 'monthly',
      allowed_services: ['a/b', 'c/*', '-c/d'],
      disabled: false,
    });
    const prefix = key!.hash.slice(0, 8);
    expect((await place.run(['key', 'disable', 'acme', prefix])).output).toContain('laptop');
    expect((await place.run(['key', 'list', 'acme'])).output).toContain('disabled');
    expect((await place.run(['key', 'enable', 'acme', prefix])).code).toBe(0);
    expect((await place.run(['key', 'delete', 'acme', prefix])).code).toBe(0);
    expect(await json('key', 'list', 'acme')).toEqual([]);
    expect(await place.run(['audit'])).toMatchObject({
      code: 0,
      output: expect.stringContaining('The books are right.'),
    });
  });

  it('show each kind of movement of its own, also after a close, whose refusals name its options', async () => {
    const run = (...args: string[]) => place.run(['account', ...args]);
    await run('create', 'gone', '--label', 'Gone Ltd');
    await run('credit', 'gone', '25');
    await run('debit', 'gone', '22', '--reason', 'typed wrong');
    const close = (...args: string[]) => run('close', 'gone', '--reason', 'contract ended', ...args);
    expect((await close()).output).toMatch(/An open account cannot be closed\. Freeze it first.*account freeze gone/);
    await run('freeze', 'gone', '--reason', 'contract ended');
    for (const args of [[], ['--paid-out', '2'], ['--write-off', '4']]) {
      const refused = await close(...args);
      expect(refused.output).toContain('has 3 USD. Say what becomes of exactly this amount: --paid-out 3 if');
      expect(refused.output).toContain('--write-off 3 if');
      expect([refused.code, /remainder|amount_usd|paid_out|written_off/.test(refused.output)]).toEqual([1, false]);
    }
    const closed = await close('--write-off', '3', '--reference', 'off-1');
    expect(closed.code, closed.output).toBe(0);
    for (const { output } of [closed, await run('show', 'gone')]) {
      expect(output).toMatch(/credited +25 USD\n *debited +22 USD\n *written off +3 USD\n *used +0 USD/);
      expect(output).toContain('closed: contract ended');
    }
    await run('create', 'more');
    await run('credit', 'more', '1');
    await run('freeze', 'more', '--reason', 'x');
    const used = await run('close', 'more', '--reason', 'x', '--paid-out', '1', '--reference', 'off-1');
    expect(used.output).toMatch(/already used for another account: [\d.]+ USD from .*\. Give another --reference\./);
    await run('close', 'more', '--reason', 'x', '--paid-out', '1');
    expect((await run('show', 'more')).output).toMatch(/credited +1 USD\n *debited +0 USD\n *paid out +1 USD/);
    expect((await place.run(['audit'])).code).toBe(0);
  });

  it('talk to the gateway that is named', async () => {
    const { base_url } = await place.read('gateway.json');
    const elsewhere = { TOLLGATE_DATA: join(place.dir, 'elsewhere'), TOLLGATE_URL: base_url };
    expect(
      (
        await place.run(['account', 'create', 'named'], {
          ...elsewhere,
          TOLLGATE_ADMIN_KEY: ADMIN_KEY,
        })
      ).code,
    ).toBe(0);
    const wrong = await place.run(['account', 'list'], {
      ...elsewhere,
      TOLLGATE_ADMIN_KEY: 'another-admin-key-of-it-0123456789',
    });
    expect(wrong).toMatchObject({ code: 1, output: expect.stringContaining('Invalid admin key') });
    const none = await place.run(['account', 'list'], elsewhere);
    expect(none).toMatchObject({ code: 1, output: expect.stringContaining('TOLLGATE_ADMIN_KEY') });
  });

  it('find a gateway that was killed to be gone', async () => {
    gateway.signal('SIGKILL');
    await gateway.exited;
    expect(await place.read('gateway.json')).toMatchObject({ pid: gateway.pid });
    expect((await place.runAlone(['audit'])).code).toBe(0);
  });
});

describe('the commands of the administration', () => {
  beforeEach(arrange);
  afterEach(clear);

  it('open the database where none runs', async () => {
    expect((await place.runAlone(['account', 'create', 'acme'])).code).toBe(0);
    expect((await place.run(['account', 'credit', 'acme', '3'])).output).toContain('now has 3 USD');
    expect((await place.run(['key', 'create', 'acme'])).stdout).toMatch(/^svc-sk-v2-/);
    expect(await place.runAlone(['audit'])).toMatchObject({
      code: 0,
      output: expect.stringContaining('The books are right.'),
    });
    expect(await place.run(['identity'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('No gateway runs on this data directory'),
    });
  });

  it('tell what to do when something is wrong', async () => {
    const cases: [args: string[], code: number, says: string][] = [
      [['account', 'list'], 1, 'No gateway has run with the data directory'],
      [['audit'], 2, 'The audit could not be done'],
      [
        ['audit', '--url', 'http://127.0.0.1:9', '--admin-key', 'an-admin-key-of-the-test-0123456789'],
        2,
        'does not answer',
      ],
      [['acount', 'list'], 2, 'Did you mean account?'],
      [['key', 'create'], 2, 'Help: tollgate key create --help'],
      [['account', 'create', 'No Such Name'], 1, 'small letters, digits and hyphens'],
      [['account', 'credit', 'acme', '0'], 1, '<usd> is an amount in USD above 0'],
      [['key', 'create', 'acme', '--limit', 'x'], 1, '--limit is an amount in USD'],
      [['serve', '--port', 'x'], 1, '--port\n    is "x"'],
      // What was refused until here has made no database.
      [['account', 'list'], 1, 'No gateway has run with the data directory'],
      [['account', 'create', 'acme'], 0, 'account credit acme 10'],
      [['key', 'list', 'nobody'], 1, 'tollgate.mjs account list'],
      [['help', 'key'], 0, 'Usage: tollgate key <command>'],
    ];
    for (const [args, code, says] of cases) {
      // A usage error and what a command refuses: the exit code is that of a process.
      const alone = args[0] === 'acount' || args[1] === 'credit';
      const result = await (alone ? place.runAlone(args) : place.run(args));
      expect.soft(result, args.join(' ')).toMatchObject({ code, output: expect.stringContaining(says) });
      expect.soft(result.output, args.join(' ')).not.toContain('    at ');
    }
  });
});

describe('the commands of the administration, without a gateway', () => {
  beforeEach(arrange);
  afterEach(clear);

  it('show an account by its label, and say which ids there are where several have it', async () => {
    const run = (...args: string[]) => place.run(['account', ...args]);
    await run('create', 'first', '--label', 'Twin Ltd');
    expect((await run('show', 'twin ltd')).output).toMatch(/account +tollgate:local:first/);
    const taken = await run('create', 'second', '--label', 'Twin Ltd');
    expect([taken.code, taken.output]).toEqual([1, expect.stringContaining('Another account has the label')]);
    // Customers choose the names of their organisations, so several can be called so.
    await run('create', 'second');
    const database = new DatabaseSync(join(place.data, 'tollgate.db'), { timeout: 10_000 });
    database.exec("UPDATE consumers SET label = 'Twin Ltd' WHERE label = 'second'");
    database.close();
    const both = await run('show', 'Twin Ltd');
    expect([both.code, both.output]).toEqual([
      1,
      expect.stringMatching(
        /2 accounts have the name or label Twin Ltd[\s\S]*tollgate:local:first  Twin Ltd\n +tollgate:local:second/,
      ),
    ]);
    const none = await run('show', 'Nobody Ltd');
    expect([none.code, none.output]).toEqual([1, expect.stringContaining('Account not found')]);
  });
});

describe('tollgate audit', () => {
  beforeEach(arrange);
  afterEach(clear);

  it('exits with 1 and shows what differs when somebody has changed a balance', async () => {
    await place.run(['account', 'create', 'acme']);
    await place.run(['account', 'credit', 'acme', '1']);
    const database = new DatabaseSync(join(place.data, 'tollgate.db'), { timeout: 10_000 });
    const changed = database
      .prepare("UPDATE accounts SET available = available + 5 WHERE id = 'escrow:tollgate:local:acme'")
      .run().changes;
    database.close();
    expect(changed).toBe(1);
    const { code, output } = await place.runAlone(['audit']);
    expect(code).toBe(1);
    expect(output).toContain('✗ balances');
    expect(output).toContain('The books differ.');
    expect(((await json('audit')) as { ok: boolean }).ok).toBe(false);
  });
});
