import { expect } from 'vitest';
import { declares, expectError, workingTask, type Bench, type Checks } from '../bench.ts';
import type { Json } from '../shapes.ts';
import { readEvent } from '../shapes.ts';
import { tells } from '../webhook.ts';

/** Push notifications: their configuration and their delivery (§3.1.7–§3.1.10, §4.3, §13.2; 0.3 §7.5–§7.8). */
export const pushChecks: Checks = {
  'PUSH-01': async (bench) => {
    const taskId = await workingTask(bench);
    const config = await create(bench, taskId, { url: (await bench.webhook()).url });
    expect(config.id).toMatch(/./u);
    expect(config.taskId).toBe(taskId);
    bench.agent.finish(taskId);
  },
  'PUSH-02': async (bench) => {
    const taskId = await workingTask(bench);
    const { url } = await bench.webhook();
    const { id } = await create(bench, taskId, { url });
    const got = readConfig(
      (await bench.talk.call('GetTaskPushNotificationConfig', named(bench, taskId, id))).result(),
      bench,
    );
    expect(got).toMatchObject({ id, taskId, url });
    bench.agent.finish(taskId);
  },
  'PUSH-03': async (bench) => {
    const { id: taskId } = await bench.talk.task('task x');
    const reply = await bench.talk.call('GetTaskPushNotificationConfig', named(bench, taskId, 'no-such-config'));
    expectError(reply, 'taskNotFound', bench);
  },
  'PUSH-04': async (bench) => {
    const taskId = await workingTask(bench);
    const { url } = await bench.webhook();
    const one = await create(bench, taskId, { url, id: 'config-a' });
    const two = await create(bench, taskId, { url, id: 'config-b' });
    expect((await listed(bench, taskId)).toSorted()).toEqual([one.id, two.id].toSorted());
    bench.agent.finish(taskId);
  },
  'PUSH-05': async (bench) => {
    const taskId = await workingTask(bench);
    const { id } = await create(bench, taskId, { url: (await bench.webhook()).url });
    const deleted = await bench.talk.call('DeleteTaskPushNotificationConfig', named(bench, taskId, id));
    expect(deleted.error, deleted.text).toBeNull();
    expect(deleted.status).toBeLessThan(300);
    expect(await listed(bench, taskId)).toEqual([]);
    expectError(
      await bench.talk.call('GetTaskPushNotificationConfig', named(bench, taskId, id)),
      'taskNotFound',
      bench,
    );
    bench.agent.finish(taskId);
  },
  'PUSH-06': async (bench) => {
    const taskId = await workingTask(bench);
    const { id } = await create(bench, taskId, { url: (await bench.webhook()).url });
    await bench.talk.call('DeleteTaskPushNotificationConfig', named(bench, taskId, id));
    const again = await bench.talk.call('DeleteTaskPushNotificationConfig', named(bench, taskId, id));
    expect(again.error, again.text).toBeNull();
    bench.agent.finish(taskId);
  },
  'PUSH-07': async (bench) => {
    const quiet = await bench.other({ pushNotifications: false });
    if (await declares(quiet, 'pushNotifications')) {
      const taskId = await workingTask(quiet);
      const hook = await quiet.webhook();
      await create(quiet, taskId, { url: hook.url });
      quiet.agent.finish(taskId);
      return void (await hook.receives((request) => tells(request, quiet.talk.version, taskId, 'completed')));
    }
    const { id: taskId } = await quiet.talk.task('task x');
    const asked = [
      quiet.talk.call(
        'CreateTaskPushNotificationConfig',
        configOf(quiet, taskId, { url: 'https://client.example/told' }),
      ),
      quiet.talk.call('GetTaskPushNotificationConfig', named(quiet, taskId, 'x')),
      quiet.talk.call('ListTaskPushNotificationConfigs', quiet.talk.version === '1.0' ? { taskId } : { id: taskId }),
      quiet.talk.call('DeleteTaskPushNotificationConfig', named(quiet, taskId, 'x')),
    ];
    for (const reply of await Promise.all(asked)) expectError(reply, 'pushNotificationNotSupported', quiet);
  },
  'PUSH-08': async (bench) => {
    const config = configOf(bench, 'no-such-task', { url: (await bench.webhook()).url });
    expectError(await bench.talk.call('CreateTaskPushNotificationConfig', config), 'taskNotFound', bench);
  },
  'PUSH-09': async (bench) => {
    const { talk, agent } = bench;
    const hook = await bench.webhook();
    const taskId = await workingTask(bench);
    await create(bench, taskId, { url: hook.url });
    agent.finish(taskId);
    const told = await hook.receives((request) => tells(request, talk.version, taskId, 'completed'));
    expect(told.verb).toBe('POST');
    expect(told.headers['content-type']).toMatch(
      talk.version === '1.0' ? /^application\/a2a\+json\b/u : /^application\/json\b/u,
    );
  },
  'PUSH-10': async (bench) => {
    const { talk, agent } = bench;
    const hook = await bench.webhook();
    const name = talk.version === '1.0' ? 'taskPushNotificationConfig' : 'pushNotificationConfig';
    const task = await talk.task('wait', { immediately: true, configuration: { [name]: { url: hook.url } } });
    agent.finish(task.id);
    await hook.receives((request) => tells(request, talk.version, task.id, 'completed'));
  },
  'PUSH-11': async (bench) => {
    const { talk, agent } = bench;
    const [kept, dropped] = [await bench.webhook(), await bench.webhook()];
    const taskId = await workingTask(bench);
    await create(bench, taskId, { url: kept.url, id: 'kept' });
    const { id } = await create(bench, taskId, { url: dropped.url, id: 'dropped' });
    await talk.call('DeleteTaskPushNotificationConfig', named(bench, taskId, id));
    agent.finish(taskId);
    await kept.receives((request) => tells(request, talk.version, taskId, 'completed'));
    expect(dropped.received).toEqual([]);
  },
  'PUSH-12': async (bench) => {
    const { talk, agent } = bench;
    const hook = await bench.webhook();
    const taskId = await workingTask(bench);
    const scheme = talk.version === '1.0' ? { scheme: 'Bearer' } : { schemes: ['Bearer'] };
    await create(bench, taskId, { url: hook.url, authentication: { ...scheme, credentials: 'hook-credential' } });
    agent.finish(taskId);
    const told = await hook.receives((request) => tells(request, talk.version, taskId, 'completed'));
    expect(told.headers.authorization).toBe('Bearer hook-credential');
  },
  'PUSH-13': async (bench) => {
    const { talk, agent } = bench;
    const hook = await bench.webhook();
    const taskId = await workingTask(bench);
    await create(bench, taskId, { url: hook.url, token: 'hook-token' });
    agent.finish(taskId);
    const told = await hook.receives((request) => tells(request, talk.version, taskId, 'completed'));
    expect(told.headers['x-a2a-notification-token']).toBe('hook-token');
  },
  'PUSH-14': async (bench) => {
    const { talk, agent } = bench;
    const hook = await bench.webhook();
    const taskId = await workingTask(bench);
    await create(bench, taskId, { url: hook.url });
    agent.progress(taskId, 'part ');
    agent.finish(taskId);
    await hook.receives((request) => tells(request, talk.version, taskId, 'completed'));
    for (const { body } of hook.received) {
      const said = JSON.parse(body) as Json;
      expect(() => readEvent(said, talk.version)).not.toThrow();
      if (talk.version === '1.0') expect(Object.keys(said)).toHaveLength(1);
    }
  },
};

interface Config {
  readonly id: string;
  readonly taskId: string;
  readonly url: string;
}

/** A configuration as it is set: flat in 1.0, an object of its own in 0.3. */
const configOf = ({ talk }: Bench, taskId: string, config: Json): Json =>
  talk.version === '1.0' ? { taskId, ...config } : { taskId, pushNotificationConfig: config };

const named = ({ talk }: Bench, taskId: string, id: string): Json =>
  talk.version === '1.0' ? { taskId, id } : { id: taskId, pushNotificationConfigId: id };

function readConfig(value: Json, { talk }: Bench): Config {
  const inner = talk.version === '1.0' ? value : (value['pushNotificationConfig'] as Json);
  return { id: String(inner['id'] ?? ''), taskId: String(value['taskId']), url: String(inner['url']) };
}

async function create(bench: Bench, taskId: string, config: Json): Promise<Config> {
  const reply = await bench.talk.call('CreateTaskPushNotificationConfig', configOf(bench, taskId, config));
  return readConfig(reply.result(), bench);
}

async function listed(bench: Bench, taskId: string): Promise<string[]> {
  const { talk } = bench;
  const reply = await talk.call(
    'ListTaskPushNotificationConfigs',
    talk.version === '1.0' ? { taskId } : { id: taskId },
  );
  const result: unknown = reply.result();
  const configs = talk.version === '1.0' ? ((result as Json)['configs'] ?? []) : result;
  return (configs as Json[]).map((one) => readConfig(one, bench).id);
}
