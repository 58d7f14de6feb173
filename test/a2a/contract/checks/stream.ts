import { expect } from 'vitest';
import { declares, expectError, refusedStream, type Checks } from '../bench.ts';
import { writeMessage, type Json } from '../shapes.ts';

/** Send Streaming Message (§3.1.2, §3.5.2, §9.4.2, §11.7; 0.3 §3.3, §7.2). */
export const streamChecks: Checks = {
  'STREAM-01': async ({ talk }) => {
    const events = await (await talk.stream('echo hi')).rest();
    expect(events).toMatchObject([{ type: 'message', text: 'hi' }]);
  },
  'STREAM-02': async ({ talk }) => {
    const events = await (await talk.stream('stream 2')).rest();
    expect(events[0]).toMatchObject({ type: 'task' });
    for (const { type } of events.slice(1)) expect(['status', 'artifact']).toContain(type);
    expect(events.at(-1)).toMatchObject({ type: 'status', state: 'completed' });
  },
  'STREAM-03': async ({ talk }) => {
    const events = await (await talk.stream('stream 5')).rest();
    const said = events.map((event) =>
      event.type === 'status' ? event.text : event.type === 'artifact' ? String(event.artifact.parts[0]?.value) : '',
    );
    const wanted = [1, 2, 3, 4, 5].flatMap((step) => [`step ${step}`, `chunk ${step} `]);
    expect(said.filter((text) => text !== '')).toEqual(wanted);
  },
  'STREAM-04': async ({ talk }) => {
    const stream = await talk.stream('stream 1');
    expect(stream.status).toBe(200);
    expect(stream.contentType).toMatch(/^text\/event-stream\b/u);
    await stream.rest();
  },
  'STREAM-05': async ({ talk }) => {
    const id = `mine-${crypto.randomUUID()}`;
    const method = talk.version === '1.0' ? 'SendStreamingMessage' : 'message/stream';
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id,
      method,
      params: { message: writeMessage(talk.version, 'stream 2') },
    });
    const { text } = await talk.raw('POST', '/', body);
    const events = text.split(/\r?\n/u).filter((line) => line.startsWith('data:'));
    expect(events.length).toBeGreaterThan(3);
    for (const line of events) {
      const said = JSON.parse(line.slice(5)) as Json;
      expect(said).toMatchObject({ jsonrpc: '2.0', id, result: expect.anything() });
      expect(said).not.toHaveProperty('error');
    }
  },
  'STREAM-06': async ({ talk }) => {
    const stream = await talk.stream('stream 2');
    await stream.rest();
    for (const { data } of stream.wire) {
      const json = JSON.parse(data) as Json;
      const said = talk.binding === 'JSONRPC' ? (json['result'] as Json) : json;
      expect(Object.keys(said)).toHaveLength(1);
    }
  },
  'STREAM-07': async (bench) => {
    const still = await bench.other({ streaming: false });
    if (await declares(still, 'streaming')) {
      const events = await (await still.talk.stream('task x')).rest();
      return expect(events.map((event) => ('state' in event ? event.state : ''))).toContain('completed');
    }
    const reply = await refusedStream(still, 'SendStreamingMessage', {
      message: writeMessage(still.talk.version, 'stream 1'),
    });
    expectError(reply, 'unsupportedOperation', still);
    const id = (await still.talk.task('wait', { immediately: true })).id;
    expectError(await refusedStream(still, 'SubscribeToTask', { id }), 'unsupportedOperation', still);
    still.agent.finish(id);
  },
  'STREAM-08': async (bench) => {
    const message = writeMessage(bench.talk.version, 'task x', { taskId: 'no-such-task' });
    expectError(await refusedStream(bench, 'SendStreamingMessage', { message }), 'taskNotFound', bench);
  },
  'STREAM-09': async ({ talk }) => {
    const events = await (await talk.stream('ask')).rest();
    expect(events.at(-1)).toMatchObject({ type: 'status', state: 'input-required', text: 'Which one?' });
  },
  'STREAM-10': async ({ talk }) => {
    const events = await (await talk.stream('stream 2')).rest();
    const finals = events.filter(({ type }) => type === 'status').map(({ raw }) => raw['final']);
    expect(finals.at(-1)).toBe(true);
    expect(finals.slice(0, -1)).toEqual(finals.slice(0, -1).map(() => false));
  },
  'STREAM-11': async ({ talk, agent }) => {
    const stream = await talk.stream('wait');
    const first = await stream.next();
    if (first?.type !== 'task') throw new Error('a stream begins with its task');
    stream.leave();
    // A round trip after the hang-up, so that it had its effect if it has any.
    expect(['submitted', 'working']).toContain((await talk.get(first.id)).state);
    agent.finish(first.id);
    expect((await talk.reaches(first.id, 'completed')).artifacts).toHaveLength(1);
  },
  'STREAM-12': async ({ talk }) => {
    const stream = await talk.stream('stream 2');
    await stream.rest();
    expect(stream.wire.length).toBeGreaterThan(3);
    for (const { lines, type } of stream.wire) {
      expect(type).toBe('message');
      for (const line of lines) expect(line).toMatch(/^(?:data: ?\S|event: ?message$|id: ?\S|retry: ?\d+$|:)/u);
    }
  },
  'STREAM-13': async ({ talk }) => {
    const events = await (await talk.stream('stream 3')).rest();
    const chunks = events.flatMap((event) => (event.type === 'artifact' ? [event] : []));
    expect(new Set(chunks.map(({ artifact }) => artifact.artifactId)).size).toBe(1);
    expect(chunks.map(({ append }) => append)).toEqual([false, true, true]);
    expect(chunks.map(({ lastChunk }) => lastChunk)).toEqual([false, false, true]);
    const task = await talk.get(chunks[0]!.taskId);
    expect(task.artifacts[0]?.parts.map(({ value }) => value)).toEqual(
      chunks.flatMap(({ artifact }) => artifact.parts.map(({ value }) => value)),
    );
  },
  'STREAM-14': async ({ talk }) => {
    const events = await (await talk.stream('usage 3 4')).rest();
    const last = events.at(-1);
    expect(last).toMatchObject({
      type: 'status',
      metadata: { 'tollgate/usage': { prompt_tokens: 3, completion_tokens: 4 } },
    });
  },
};
