import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Generation, type Spine } from '../support/spine.ts';

type Tags = Readonly<Record<string, string>>;

describe.each(ENGINES)('tags of a key, an application and an end user, on %s', (engine) => {
  let spine: Spine;
  let drop = async () => {};
  let account: string;
  let free: string;
  let fixed: { readonly key: string; readonly hash: string };
  beforeAll(async () => {
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = fresh.drop;
      spine = await startSpine({ databaseUrl: fresh.url, toml: UNHURRIED });
    } else spine = await startSpine({ toml: UNHURRIED });
    ({ key: free, account } = await spine.tenant('acme', '5'));
    const made = await manage('POST', '', { name: 'search', tags: { team: 'search', tier: 'gold' } });
    expect(made).toMatchObject({ status: 201, body: { data: { tags: { team: 'search', tier: 'gold' } } } });
    fixed = { key: made.body.key!, hash: made.body.data.hash };
  });
  afterAll(async () => {
    await spine.stop();
    await drop();
  });

  const manage = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}/keys${path}`, {
      method,
      headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: answer.status,
      body: (await answer.json()) as {
        readonly key?: string;
        readonly data: { readonly hash: string; readonly tags: Tags | null };
        readonly error?: { readonly message: string };
      },
    };
  };
  const called = async (
    key: string,
    headers: Record<string, string>,
    more: object = {},
    path = '/chat/completions',
  ) => {
    const answer = await spine.post(path, ask('hello', more), { authorization: `Bearer ${key}`, ...headers });
    const text = await answer.text();
    if (answer.status !== 200) return { status: answer.status, text, tags: null };
    const call = (await spine.generation(answer.headers.get('x-generation-id'), key)) as Generation & {
      readonly tags: Tags;
      readonly session_id: string | null;
    };
    return { status: answer.status, text, tags: call.tags, session: call.session_id };
  };
  const digest = (user: string) => createHash('sha256').update(`${account}\n${user}`).digest('hex').slice(0, 24);

  it('are on each call of the key, beside those of the request', async () => {
    const own = { team: 'search', tier: 'gold' };
    expect((await called(fixed.key, {})).tags).toEqual(own);
    expect((await called(fixed.key, { 'x-tollgate-tags': 'run=7,team=search' })).tags).toEqual({ ...own, run: '7' });
    expect((await called(fixed.key, {}, { metadata: { run: '8' } })).tags).toEqual({ ...own, run: '8' });
    expect((await called(free, {})).tags).toEqual({});
  });

  it('cannot be overridden: the request is refused by the name of the tag, and nothing is called', async () => {
    const before = spine.provider.log.length;
    const refusals = [
      await called(fixed.key, { 'x-tollgate-tags': 'team=ads' }),
      await called(fixed.key, { 'x-litellm-tags': 'team:ads' }),
      await called(fixed.key, {}, { metadata: { team: 'ads' } }),
      await called(fixed.key, {}, { metadata: { tags: ['team:ads'] } }),
    ];
    for (const { status, text } of refusals)
      expect([status, text]).toEqual([403, expect.stringContaining('The tag team is search on this API key')]);
    expect(spine.provider.log.length).toBe(before);
    const nine = Array.from({ length: 7 }, (_, index) => `t${index}=x`).join(',');
    expect((await called(fixed.key, { 'x-tollgate-tags': nine })).text).toContain(
      'at most 8 tags, with those of its key',
    );
  });

  it('are those of the key of the call, though other keys send the same header', async () => {
    const made = await manage('POST', '', { name: 'ads', tags: { team: 'ads' } });
    const headers = { 'x-tollgate-tags': 'run=9' };
    expect((await called(fixed.key, headers)).tags).toEqual({ team: 'search', tier: 'gold', run: '9' });
    expect((await called(made.body.key!, headers)).tags).toEqual({ team: 'ads', run: '9' });
    expect((await called(free, headers)).tags).toEqual({ run: '9' });
    const header = { 'x-tollgate-tags': 'team=search' };
    expect((await called(fixed.key, header)).status).toBe(200);
    expect((await called(made.body.key!, header)).status).toBe(403);
  });

  it('are in the signed receipt, of the answer and of the record alike', async () => {
    const answer = await spine.post('/chat/completions', ask('hello'), {
      authorization: `Bearer ${fixed.key}`,
      'x-receipt': '1',
      'x-tollgate-tags': 'run=7',
    });
    const receipt = answer.headers.get('x-receipt')!;
    await answer.text();
    const payload = JSON.parse(Buffer.from(receipt.split('.')[1]!, 'base64url').toString()) as object;
    expect(payload).toMatchObject({ tags: { team: 'search', tier: 'gold', run: '7' } });
    const call = await spine.generation(answer.headers.get('x-generation-id'), fixed.key);
    expect(call).toMatchObject({ receipt });
  });

  it('make a key restricted, so that it makes no key without them', async () => {
    const answer = await spine.post('/keys', { label: 'free' }, { authorization: `Bearer ${fixed.key}` });
    expect(answer.status).toBe(403);
  });

  it('are changed and removed by whoever manages the key, at once', async () => {
    const changed = await manage('PATCH', `/${fixed.hash}`, { tags: { team: 'ads' } });
    expect(changed.body.data.tags).toEqual({ team: 'ads' });
    expect((await called(fixed.key, {})).tags).toEqual({ team: 'ads' });
    expect((await manage('PATCH', `/${fixed.hash}`, { name: 'x' })).body.data.tags).toEqual({ team: 'ads' });
    for (const tags of [
      { '1x': 'a' },
      { team: '' },
      { team: 'x'.repeat(65) },
      { a: '1', b: '2', c: '3', d: '4', e: '5' },
    ])
      expect((await manage('PATCH', `/${fixed.hash}`, { tags })).status).toBe(400);
    expect((await manage('PATCH', `/${fixed.hash}`, { tags: { team: 'a\nb' } })).status).toBe(400);
    expect((await manage('PATCH', `/${fixed.hash}`, { tags: null })).body.data.tags).toBeNull();
    expect((await called(fixed.key, { 'x-tollgate-tags': 'team=ads' })).tags).toEqual({ team: 'ads' });
  });

  it('are read from what clients of OpenRouter, LiteLLM and Claude Code send already', async () => {
    expect((await called(free, { 'x-title': 'My Agent', 'http-referer': 'https://agent.example' })).tags).toEqual({
      app: 'My Agent',
    });
    expect((await called(free, { 'http-referer': 'https://agent.example/page?q=1' })).tags).toEqual({
      app: 'agent.example',
    });
    expect((await called(free, { 'x-litellm-end-user-id': 'ann' })).tags).toEqual({ end_user: digest('ann') });
    expect((await called(free, {}, { user: 'ann@example.com' })).tags).toEqual({ end_user: digest('ann@example.com') });
    const session = '6a1c0f0e-0000-4000-8000-000000000001';
    const forms = [
      'user_0123abcd_account_11111111-2222-4333-8444-555555555555_session_6a1c0f0e-0000-4000-8000-000000000001',
      JSON.stringify({
        device_id: '0123abcd',
        account_uuid: '11111111-2222-4333-8444-555555555555',
        session_id: session,
      }),
    ];
    for (const user of forms) {
      const answer = await called(free, {}, { metadata: { user_id: user }, max_tokens: 20 }, '/messages');
      expect(answer).toMatchObject({
        tags: { end_user: digest('11111111-2222-4333-8444-555555555555') },
        session,
      });
      expect(Object.keys(answer.tags!)).toEqual(['end_user']);
    }
    expect(await spine.faults()).toEqual([]);
  });
});

describe.each(['plain', 'off'] as const)('end users with the option %s', (endUsers) => {
  let spine: Spine;
  beforeAll(async () => {
    spine = await startSpine({ toml: `${UNHURRIED}\n[billing]\nend_users = "${endUsers}"\n` });
  });
  afterAll(async () => spine.stop());

  it('are stored as the operator says', async () => {
    const answer = await spine.post('/chat/completions', ask('hello', { user: 'ann@example.com' }));
    await answer.text();
    const call = await spine.generation(answer.headers.get('x-generation-id'));
    expect(call).toMatchObject({ tags: endUsers === 'plain' ? { end_user: 'ann@example.com' } : {} });
    if (endUsers === 'off') expect(JSON.stringify(call)).not.toContain('end_user');
    expect(await spine.faults()).toEqual([]);
  });
});
