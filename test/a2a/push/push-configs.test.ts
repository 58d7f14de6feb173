import { describe, expect, test } from 'vitest';
import { caller, pushWorld } from './push-world.ts';

const URL_A = 'https://client.example/told';
const NOT_FOUND = { name: 'A2aError', type: 'TaskNotFound' };
const INVALID = { name: 'A2aError', type: 'InvalidParams' };

describe('A2A 1.0', () => {
  test('a configuration is made with an id, shown, listed and deleted, also twice', async () => {
    const { answer, begin } = await pushWorld();
    await begin();
    const params = { taskId: 'task-1', url: URL_A, token: 't', authentication: { scheme: 'Bearer', credentials: 'c' } };
    const made = (await answer('1.0', 'push-set', params)) as { id: string };
    // Neither the token nor the credentials are shown again.
    const shown = { taskId: 'task-1', url: URL_A, authentication: { scheme: 'Bearer' } };
    expect(made).toEqual({ ...shown, id: expect.stringMatching(/./u) as unknown });
    expect(await answer('1.0', 'push-get', { taskId: 'task-1', id: made.id })).toEqual(made);
    const other = await answer('1.0', 'push-set', { taskId: 'task-1', id: 'mine', url: `${URL_A}2` });
    expect(other).toEqual({ taskId: 'task-1', id: 'mine', url: `${URL_A}2` });
    const listed = (await answer('1.0', 'push-list', { taskId: 'task-1' })) as { configs: unknown[] };
    expect(listed.configs).toHaveLength(2);
    expect(listed.configs).toEqual(expect.arrayContaining([made, other]));
    for (let n = 0; n < 2; n += 1)
      expect(await answer('1.0', 'push-delete', { taskId: 'task-1', id: made.id })).toEqual({});
    expect(await answer('1.0', 'push-list', { taskId: 'task-1' })).toEqual({ configs: [other] });
    await expect(answer('1.0', 'push-get', { taskId: 'task-1', id: made.id })).rejects.toMatchObject(NOT_FOUND);
  });

  test('two without an id are two', async () => {
    const { answer, begin } = await pushWorld();
    await begin();
    for (let n = 0; n < 2; n += 1) await answer('1.0', 'push-set', { taskId: 'task-1', url: URL_A });
    expect((await answer('1.0', 'push-list', { taskId: 'task-1' })) as object).toMatchObject({ configs: [{}, {}] });
  });
});

describe('A2A 0.3', () => {
  test('a configuration is made, shown by its id or as the only one, listed and deleted', async () => {
    const { answer, begin } = await pushWorld();
    await begin();
    const config = { url: URL_A, token: 't', authentication: { schemes: ['Bearer'], credentials: 'c' } };
    const made = await answer('0.3', 'push-set', { taskId: 'task-1', pushNotificationConfig: config });
    const shown = { url: URL_A, authentication: { schemes: ['Bearer'] }, id: 'task-1' };
    expect(made).toEqual({ taskId: 'task-1', pushNotificationConfig: shown });
    expect(await answer('0.3', 'push-get', { id: 'task-1' })).toEqual(made);
    expect(await answer('0.3', 'push-get', { id: 'task-1', pushNotificationConfigId: 'task-1' })).toEqual(made);
    expect(await answer('0.3', 'push-list', { id: 'task-1' })).toEqual([made]);
    expect(await answer('0.3', 'push-delete', { id: 'task-1', pushNotificationConfigId: 'task-1' })).toBeNull();
    expect(await answer('0.3', 'push-list', { id: 'task-1' })).toEqual([]);
    await expect(answer('0.3', 'push-get', { id: 'task-1' })).rejects.toMatchObject(NOT_FOUND);
  });

  test('one without an id replaces the one before', async () => {
    const { answer, begin } = await pushWorld();
    await begin();
    for (const url of [URL_A, `${URL_A}2`])
      await answer('0.3', 'push-set', { taskId: 'task-1', pushNotificationConfig: { url } });
    expect(await answer('0.3', 'push-list', { id: 'task-1' })).toEqual([
      { taskId: 'task-1', pushNotificationConfig: { id: 'task-1', url: `${URL_A}2` } },
    ]);
  });

  test('shows what 1.0 made, and the other way round', async () => {
    const { answer, begin } = await pushWorld();
    await begin();
    await answer('1.0', 'push-set', {
      taskId: 'task-1',
      id: 'a',
      url: URL_A,
      authentication: { scheme: 'Basic', credentials: 'c' },
    });
    expect(await answer('0.3', 'push-get', { id: 'task-1', pushNotificationConfigId: 'a' })).toEqual({
      taskId: 'task-1',
      pushNotificationConfig: { id: 'a', url: URL_A, authentication: { schemes: ['Basic'] } },
    });
  });
});

test('the tasks of others are not there, whatever is asked', async () => {
  const { answer, begin } = await pushWorld();
  await begin();
  await answer('1.0', 'push-set', { taskId: 'task-1', id: 'a', url: URL_A });
  const asked = [
    ['push-set', { taskId: 'task-1', id: 'a', url: 'https://evil.example/' }],
    ['push-get', { taskId: 'task-1', id: 'a' }],
    ['push-list', { taskId: 'task-1' }],
    ['push-delete', { taskId: 'task-1', id: 'a' }],
  ] as const;
  for (const [operation, params] of asked) {
    await expect(answer('1.0', operation, params, caller('bob'))).rejects.toMatchObject(NOT_FOUND);
    await expect(answer('1.0', operation, params, caller('alice', 'gen-1'))).rejects.toMatchObject(NOT_FOUND);
    await expect(answer('1.0', operation, params, caller('alice'), 'acme/other')).rejects.toMatchObject(NOT_FOUND);
    await expect(answer('1.0', operation, { ...params, taskId: 'task-2' })).rejects.toMatchObject(NOT_FOUND);
  }
  expect(await answer('1.0', 'push-get', { taskId: 'task-1', id: 'a' })).toMatchObject({ url: URL_A });
});

test.each([
  [{ url: 'http://client.example/' }, 'url'],
  [{ url: 'https://127.0.0.1/' }, 'url'],
  [{ url: 'https://[::ffff:10.0.0.1]/' }, 'url'],
  [{ url: 'https://localhost/' }, 'url'],
  [{ url: 'https://user:secret@client.example/' }, 'url'],
  [{ url: 'nonsense' }, 'url'],
  [{ url: `https://client.example/${'a'.repeat(3_000)}` }, 'url'],
  [{}, 'url'],
  [{ url: URL_A, token: 'a\r\nx: y' }, 'token'],
  [{ url: URL_A, token: 'é' }, 'token'],
  [{ url: URL_A, token: 'a'.repeat(9_000) }, 'token'],
  [{ url: URL_A, id: 'a'.repeat(300) }, 'id'],
  [{ url: URL_A, id: 'a\u0000' }, 'id'],
  [{ url: URL_A, authentication: { scheme: 'Bea rer', credentials: 'c' } }, 'authentication'],
  [{ url: URL_A, authentication: { scheme: 'Bearer', credentials: 'a\nb' } }, 'authentication.credentials'],
])('in production %o is refused, with the member that is wrong and without its secrets', async (config, param) => {
  const { answer, begin } = await pushWorld({ allowPrivate: false });
  await begin();
  const made = answer('1.0', 'push-set', { taskId: 'task-1', ...config });
  await expect(made).rejects.toMatchObject(INVALID);
  await expect(made).rejects.toThrow(param);
  await expect(made).rejects.not.toThrow('secret');
  const { authentication, ...rest } = config as {
    readonly authentication?: { readonly scheme: string; readonly credentials: string };
  };
  const legacy = authentication
    ? { ...rest, authentication: { schemes: [authentication.scheme], credentials: authentication.credentials } }
    : rest;
  await expect(answer('0.3', 'push-set', { taskId: 'task-1', pushNotificationConfig: legacy })).rejects.toMatchObject(
    INVALID,
  );
});

test('a task has ten at the most', async () => {
  const { answer, begin } = await pushWorld();
  await begin();
  for (let n = 0; n < 10; n += 1) await answer('1.0', 'push-set', { taskId: 'task-1', url: URL_A });
  await expect(answer('1.0', 'push-set', { taskId: 'task-1', url: URL_A })).rejects.toThrow('10');
});

test.each([
  ['push-set', '1.0', { url: URL_A }],
  ['push-get', '1.0', { id: 'a' }],
  ['push-list', '0.3', { taskId: 'task-1' }],
  ['push-get', '0.3', { id: 7 }],
  ['push-delete', '0.3', { id: 'task-1' }],
] as const)('%s of %s without an id is told what is missing', async (operation, version, params) => {
  const { answer, begin } = await pushWorld();
  await begin();
  await expect(answer(version, operation, params)).rejects.toMatchObject(INVALID);
});
