import { expect } from 'vitest';
import { workingTask, type Bench, type Checks } from '../bench.ts';
import { writeMessage, type Json } from '../shapes.ts';

/** The HTTP+JSON binding (§5.3, §5.4, §11). */
export const restChecks: Checks = {
  'REST-01': async (bench) => {
    const { id } = await bench.talk.task('task x');
    expect((await bench.talk.raw('GET', `/tasks/${id}`, null)).contentType).toMatch(/^application\/a2a\+json\b/u);
    expect((await bench.talk.raw('GET', '/tasks/no-such-task', null)).contentType).toMatch(
      /^application\/(?:a2a\+)?json\b/u,
    );
  },
  'REST-02': async ({ talk }) => {
    const reply = await talk.raw('GET', '/tasks/no-such-task', null);
    expect(reply.status).toBe(404);
    expect(reply.json).toEqual({
      error: { code: 404, status: 'NOT_FOUND', message: expect.stringMatching(/./u), details: expect.any(Array) },
    });
    expect(reply.error?.raw['details']).toContainEqual(
      expect.objectContaining({
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'TASK_NOT_FOUND',
        domain: 'a2a-protocol.org',
      }),
    );
  },
  'REST-03': async ({ talk }) => {
    const { id } = await talk.task('task x');
    const reply = await talk.raw('POST', `/tasks/${id}:cancel`, '{}');
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ error: { code: 400, details: [{ reason: 'TASK_NOT_CANCELABLE' }] } });
  },
  'REST-04': async ({ talk }) => {
    const reply = await talk.raw('POST', '/message:send', '{"message":');
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ error: { code: 400, message: expect.stringMatching(/./u) } });
  },
  'REST-05': async (bench) => {
    for (const type of ['application/json', 'application/a2a+json', 'application/a2a+json; charset=utf-8']) {
      const reply = await bench.talk.raw('POST', '/message:send', body(bench, 'echo x'), { 'content-type': type });
      expect(reply.status, type).toBe(200);
    }
  },
  'REST-06': async (bench) => {
    const id = await workingTask(bench);
    const stream = await bench.talk.subscribe(id);
    bench.agent.finish(id);
    expect((await stream.rest()).length).toBeGreaterThan(0);
    expect(stream.contentType).toMatch(/^text\/event-stream\b/u);
  },
  'REST-07': async ({ talk }) => {
    expect((await talk.raw('GET', '/no/such/thing/at/all', null)).status).toBe(404);
  },
  'REST-08': async (bench) => {
    const { talk } = bench;
    const id = await workingTask(bench);
    const made = await talk.raw(
      'POST',
      `/tasks/${id}/pushNotificationConfigs`,
      JSON.stringify({ url: (await bench.webhook()).url }),
    );
    expect([200, 201]).toContain(made.status);
    const config = (made.json as Json)['id'];
    const gone = await talk.raw('DELETE', `/tasks/${id}/pushNotificationConfigs/${String(config)}`, null);
    expect([200, 204]).toContain(gone.status);
    bench.agent.finish(id);
  },
  'REST-09': async ({ talk }) => {
    const { id } = await talk.task('stream 3');
    const reply = await talk.raw('GET', `/tasks/${id}?historyLength=1`, null);
    expect((reply.json as Json)['history']).toHaveLength(1);
  },
  'REST-10': async ({ talk }) => {
    expect([400, 404, 405]).toContain((await talk.raw('GET', '/message:send', null)).status);
  },
  'REST-11': async (bench) => {
    const id = await workingTask(bench);
    const reply = await bench.talk.raw('POST', `/tasks/${id}:cancel`, null);
    expect(reply.status, reply.text).toBe(200);
    expect(reply.json).toMatchObject({ id, status: { state: 'TASK_STATE_CANCELED' } });
  },
  'REST-12': async (bench) => {
    const reply = await bench.talk.raw('POST', '/message:send', body(bench, 'echo x'));
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.json as Json)).toEqual(['message']);
  },
  'REST-13': async (bench) => {
    const id = await workingTask(bench);
    bench.agent.finish(id);
    const wanted = await bench.talk.reaches(id, 'completed');
    const encoded = await bench.talk.raw('GET', `/tasks/${id.replaceAll('-', '%2D')}`, null);
    expect((encoded.json as Json)['id']).toBe(wanted.id);
  },
};

const body = ({ talk }: Bench, text: string) => JSON.stringify({ message: writeMessage(talk.version, text) });
