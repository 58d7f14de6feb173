import { expect } from 'vitest';
import { memberNames, type Checks } from '../bench.ts';
import { writeMessage, type Json, type Part } from '../shapes.ts';

/** What the JSON looks like: names, enums, timestamps, parts (§4.1, §4.2, §5.5–§5.7; 0.3 §6). */
export const dataChecks: Checks = {
  'DATA-01': async ({ talk }) => {
    const stream = await talk.stream('stream 2');
    await stream.rest();
    const names = memberNames(stream.wire.map(({ data }) => JSON.parse(data) as Json));
    for (const name of memberNames((await talk.sent('parts')).json)) names.add(name);
    expect(names.size).toBeGreaterThan(10);
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z0-9]*$/u);
  },
  'DATA-02': async ({ talk }) => {
    const asked = (await talk.sent('ask')).text;
    expect(asked).toContain(talk.version === '1.0' ? '"TASK_STATE_INPUT_REQUIRED"' : '"input-required"');
    expect(asked).toContain(talk.version === '1.0' ? '"ROLE_AGENT"' : '"agent"');
    expect(asked).not.toContain(talk.version === '1.0' ? '"input-required"' : 'TASK_STATE_');
  },
  'DATA-03': async ({ talk }) => {
    const { status } = await talk.task('task x');
    expect(status['timestamp']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/u);
  },
  'DATA-04': async ({ talk }) => {
    const stream = await talk.stream('stream 1');
    await stream.rest();
    const names = memberNames([
      ...stream.wire.map(({ data }) => JSON.parse(data) as Json),
      (await talk.sent('parts')).json,
    ]);
    for (const gone of ['kind', 'final', 'file', 'mimeType']) expect(names).not.toContain(gone);
  },
  'DATA-05': async ({ talk }) => {
    const task = (await talk.task('parts')).raw;
    expect(task['kind']).toBe('task');
    for (const message of (task['history'] ?? []) as Json[]) expect(message['kind']).toBe('message');
    const kinds = (task['artifacts'] as Json[]).flatMap(({ parts }) => (parts as Json[]).map(({ kind }) => kind));
    expect(kinds).toEqual(['text', 'file', 'file', 'data']);
    const message = (await talk.send('echo x')).raw;
    expect(message['kind']).toBe('message');
  },
  'DATA-06': async ({ talk }) => {
    const { artifacts } = await talk.task('parts');
    expect(artifacts[0]?.parts).toMatchObject([
      { kind: 'text', value: 'a text' },
      { kind: 'bytes', value: btoa('the bytes'), mediaType: 'application/octet-stream', filename: 'bytes.bin' },
      { kind: 'url', value: 'https://files.example/picture.png', mediaType: 'image/png', filename: 'picture.png' },
      { kind: 'data', value: { answer: 42, list: [1, 'two', null] } },
    ]);
  },
  'DATA-07': async ({ talk }) => {
    const parts = [
      { kind: 'text', value: 'mirror', mediaType: undefined, filename: undefined },
      { kind: 'bytes', value: btoa('\u0000\u00ff mine'), mediaType: 'image/gif', filename: 'a b.gif' },
      { kind: 'url', value: 'https://client.example/f?q=1', mediaType: 'text/csv', filename: 'f.csv' },
      { kind: 'data', value: { deep: { er: [true, null, 1.5, 'ü'] } }, mediaType: undefined, filename: undefined },
    ] as const satisfies readonly Part[];
    const answer = await talk.send(parts);
    if (answer.type !== 'task') throw new Error('a task should have come');
    const seen = answer.artifacts[0]?.parts.map(({ kind, value }) => ({ kind, value }));
    expect(seen).toEqual(parts.map(({ kind, value }) => ({ kind, value })));
    expect(answer.artifacts[0]?.parts[1]).toMatchObject({ mediaType: 'image/gif', filename: 'a b.gif' });
  },
  'DATA-08': async ({ talk }) => {
    const { artifacts } = await talk.task('parts');
    expect(new Set(artifacts.map(({ artifactId }) => artifactId)).size).toBe(artifacts.length);
    for (const { artifactId, parts } of artifacts) {
      expect(artifactId).toMatch(/./u);
      expect(parts.length).toBeGreaterThan(0);
    }
  },
  'DATA-09': async ({ talk }) => {
    const { history } = await talk.task('ask');
    expect(history.length).toBeGreaterThan(0);
    for (const { raw } of [...history, await talk.send('echo x')]) {
      const message = (raw['message'] ?? raw) as Json;
      expect(message['messageId']).toEqual(expect.stringMatching(/./u));
      expect(message['role']).toEqual(expect.stringMatching(/./u));
      expect((message['parts'] as unknown[]).length).toBeGreaterThan(0);
    }
  },
  'DATA-10': async ({ talk }) => {
    const task = await talk.task('usage 3 4');
    expect(task.metadata).toMatchObject({ 'tollgate/usage': { prompt_tokens: 3, completion_tokens: 4 } });
  },
  'DATA-11': async ({ talk, agent }) => {
    const marker = `marker-${crypto.randomUUID()}`;
    const metadata = { 'https://ext.example/v1': { marker, snake_case: [1, { Odd: null }] } };
    await talk.send('echo x', { metadata, message: { metadata } });
    const { params } = await agent.receives(({ body }) => body.includes(marker));
    expect(params).toMatchObject({ metadata, message: { metadata } });
  },
  'DATA-12': async ({ talk }) => {
    const message = writeMessage(talk.version, 'echo ünïcödé 漢字 🙂 \u2028');
    const reply = await talk.call('SendMessage', { message });
    expect(reply.text).not.toContain('\ufffd');
    expect(JSON.stringify(reply.json)).toContain('ünïcödé 漢字 🙂 \u2028');
  },
};
