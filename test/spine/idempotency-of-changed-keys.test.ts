import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { NewKeyFields } from '#auth/keys';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

describe.each(ENGINES)('idempotency keys of an API key whose restrictions change, on %s', (engine) => {
  let spine: Spine;
  let drop = async () => {};
  beforeAll(async () => {
    const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    drop = fresh?.drop ?? drop;
    spine = await startSpine({ toml: UNHURRIED, ...(fresh ? { databaseUrl: fresh.url } : {}) });
  });
  afterAll(async () => {
    expect(await spine.faults()).toEqual([]);
    await spine.stop();
    await drop();
  });

  let tenants = 0;
  async function account() {
    tenants += 1;
    const name = `changing-${tenants}`;
    await spine.tenant(name, '1');
    const keyWith = (fields: Partial<NewKeyFields> = {}) => spine.tenant(name, '0', fields);
    const chat = async (key: string, once: string, text = 'hi !tokens:1') => {
      const answer = await spine.post('/chat/completions', ask(text), {
        authorization: `Bearer ${key}`,
        'idempotency-key': once,
      });
      await answer.text();
      return {
        status: answer.status,
        id: answer.headers.get('x-generation-id'),
        repeated: answer.headers.get('idempotent-replayed') === 'true',
      };
    };
    return { keyWith, chat };
  }
  const change = (of: { account: string; hash: string }, fields: Partial<NewKeyFields>) =>
    spine.app.keys.update(of.account, of.hash, fields);

  it('a repeat after the key got a limit is answered by the first call', async () => {
    const { keyWith, chat } = await account();
    const [one, other] = [await keyWith(), await keyWith()];
    const first = await chat(one.key, 'order');
    const others = await chat(other.key, 'of another');
    await change(one, { limit: 1_000_000n });
    expect(await chat(one.key, 'order')).toEqual({ ...first, repeated: true });
    expect((await chat(one.key, 'order', 'another body')).status).toBe(409);
    // What another key of the account asked for is not its own.
    const own = await chat(one.key, 'of another');
    expect(own).toMatchObject({ status: 200, repeated: false });
    expect(own.id).not.toBe(others.id);
    expect(await chat(one.key, 'of another')).toEqual({ ...own, repeated: true });
    expect(await chat(other.key, 'of another')).toEqual({ ...others, repeated: true });
  });

  it('a repeat after the limit was lifted is answered by the first call', async () => {
    const { keyWith, chat } = await account();
    const [one, other] = [await keyWith({ limit: 1_000_000n }), await keyWith()];
    const first = await chat(one.key, 'order');
    await change(one, { limit: null });
    expect(await chat(one.key, 'order')).toEqual({ ...first, repeated: true });
    expect(await chat(other.key, 'order')).toMatchObject({ status: 200, repeated: false });
  });

  it('a repeat of a call that still runs waits for it, whatever changed meanwhile', async () => {
    const { keyWith, chat } = await account();
    const one = await keyWith();
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const running = chat(one.key, 'slow');
    while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
    await change(one, { limit: 1_000_000n });
    expect((await chat(one.key, 'slow')).status).toBe(409);
    open.resolve();
    spine.provider.hold(null);
    const first = await running;
    expect(await chat(one.key, 'slow')).toEqual({ ...first, repeated: true });
  });
});
