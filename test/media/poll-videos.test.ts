import { expect, test } from 'vitest';
import type { Observation, Task } from '#tasks';
import type { Blob } from '#files';
import type { Send } from '#call';
import { createPollVideos } from '../../src/media/video/run/poll-videos.ts';
import { fileOf, type VideoNotes, type VideoResult } from '../../src/media/video/video-task.ts';

// One look at a task by itself: which answers of a provider end it, and what is charged then.

const DUE = 1_000_000;
const NOTES = { seconds: 4, resolution: '720p', audio: false, model: 'a/film', size: '1280x720' };
const TOO_LARGE = { code: 'file_too_large', message: 'too large' };

interface Look {
  /** The answer about each job. A number is the status of an error. */
  readonly jobs: readonly (string | number)[];
  readonly state?: string;
  readonly notes?: Partial<VideoNotes>;
  /** Places of the files that are here. */
  readonly here?: readonly number[];
  /** Places of the files that are on their way. */
  readonly awaited?: readonly number[];
  readonly givenUp?: VideoResult['error'];
  readonly at?: number;
  /** The look is ended while the provider answers. */
  readonly aborts?: boolean;
}

async function look({ jobs, state = 'queued', here = [], awaited = [], at = 0, aborts = false, ...more }: Look) {
  const notes: VideoNotes = { ...NOTES, jobs: jobs.map((_, place) => `job${place}`), dueAt: DUE, ...more.notes };
  const task = {
    service: 'a/film',
    taskId: '1',
    offerId: 'a:b',
    state,
    createdAt: 0,
    notes: JSON.stringify(notes),
  } as Task;
  const ends: VideoResult[] = [];
  const left: string[] = [];
  const wanted: number[] = [];
  const aborting = new AbortController();
  const unseen: unknown[] = [];
  const send: Send = ({ path }) => {
    const answer = jobs[Number(path.slice('/videos/job'.length))]!;
    const chunks = [Buffer.from(JSON.stringify({ status: answer }))];
    if (aborts) aborting.abort();
    const reply = {
      status: typeof answer === 'number' ? answer : 200,
      headers: {},
      scrub: (text: string) => text,
      ended: false,
      read: () => (chunks.length > 0 ? chunks.splice(0) : null),
      discard() {},
    };
    return { head: Promise.resolve(reply), abort() {}, over() {} };
  };
  const pipeline = {
    prepare: async (request: unknown) => request,
    async *run({ adapter }: { adapter: { startAttempt(offer: null, send: Send): AsyncGenerator } }) {
      const { value } = await adapter.startAttempt(null, send).next();
      yield { type: 'settled', ...(value as object) };
    },
  };
  const { poll, pollAtExpiry } = createPollVideos({
    pipeline: pipeline as never,
    blobs: {
      find: async () =>
        here.map((place) => ({ source: fileOf(task, place), state: 'stored', notes: '{"seconds":4}' }) as Blob),
    },
    fetching: {
      want: (_task, place) => void wanted.push(place),
      givenUp: () => more.givenUp ?? null,
      awaits: (_task, place) => awaited.includes(place),
    },
    onEnd: async (_task, result) => void ends.push(result),
    onLeft: (_task, ids) => void left.push(...ids),
    onSeen: () => {},
    onUnseen: (error) => void unseen.push(error),
    now: () => at,
  });
  return {
    observation: await poll(task, aborting.signal),
    ends: [...ends],
    left: [...left],
    wanted,
    unseen,
    atExpiry: () => pollAtExpiry(task),
  };
}

const usageOf = (observation: Observation | null) => observation?.usageOf?.(null as never, true, null as never).usage;

test('a look that was ended tells nobody of an end', async () => {
  expect(await look({ jobs: ['failed'] })).toMatchObject({ observation: { end: 'free' }, ends: [{ files: [] }] });
  expect(await look({ jobs: ['failed'], aborts: true })).toMatchObject({ observation: null, ends: [] });
});

test('a task ends when its time is over, unless one of its files is on its way', async () => {
  const jobs = ['completed', 'in_progress'];
  expect((await look({ jobs, at: DUE - 1 })).observation).toMatchObject({ end: null });
  expect((await look({ jobs, at: DUE })).observation).toMatchObject({ end: 'free' });
  const { observation, ends, wanted } = await look({ jobs, at: DUE, awaited: [0] });
  expect([observation, ends, wanted]).toMatchObject([{ end: null }, [], [0]]);
});

test('a file that is here keeps no task waiting', async () => {
  const seen = await look({ jobs: ['completed', 'in_progress'], at: DUE, here: [0], awaited: [0] });
  expect(seen).toMatchObject({ observation: { end: 'complete' }, left: ['job1'] });
});

test('a task of an earlier version has no time of its own', async () => {
  const notes = { dueAt: undefined };
  expect((await look({ jobs: ['queued'], at: 2 * DUE, notes })).observation).toEqual({ state: 'queued', end: null });
});

test.each([
  ['without a file says that it came too late', [], { files: [], error: { code: 'time_limit' } }],
  ['with a file has no error', [1], { files: [1], error: null }],
])('a task whose time is over %s', async (_what, here, result) => {
  expect((await look({ jobs: ['queued', 'queued'], at: DUE, here })).ends).toMatchObject([result]);
});

test('a job that has failed says why, also when the time is over', async () => {
  const { ends } = await look({ jobs: ['failed', 'queued'], at: DUE });
  expect(ends).toMatchObject([{ error: { code: 'generation_failed' } }]);
});

test('the end of the task itself is an end only with a file', async () => {
  expect(await (await look({ jobs: ['queued'] })).atExpiry()).toBe(null);
  const observation = await (await look({ jobs: ['queued', 'queued'], here: [1] })).atExpiry();
  expect([observation, usageOf(observation)]).toMatchObject([{ end: 'complete' }, { second: 4n, call: 1n }]);
});

test('a job that its provider does not know is lost a minute after its creation', async () => {
  const early = await look({ jobs: [404], at: 60_000 });
  expect(early).toMatchObject({ observation: null, ends: [], unseen: [{ status: 404 }] });
  const late = await look({ jobs: [404], at: 60_001 });
  expect(late).toMatchObject({ observation: { end: 'free' }, ends: [{ error: { code: 'job_lost' } }], unseen: [] });
  const other = await look({ jobs: [500], at: 60_001 });
  expect(other).toMatchObject({ observation: null, ends: [], unseen: [{ status: 500 }] });
});

test.each([
  ['waits as long as each job waits or has failed', { jobs: ['queued', 'failed'] }, 'queued'],
  ['runs when one of its jobs runs', { jobs: ['queued', 'in_progress'] }, 'generating'],
  ['runs when a file of it is here', { jobs: ['completed', 'queued'], here: [0] }, 'generating'],
  ['does not wait again', { jobs: ['queued'], state: 'generating' }, 'generating'],
])('a task %s', async (_what, how, state) => {
  expect((await look(how)).observation).toEqual({ state, end: null });
});

test('a file that is too large is charged, unless its provider dialled in', async () => {
  const jobs = ['completed', 'failed'];
  const own = (await look({ jobs, givenUp: TOO_LARGE })).observation;
  expect(own).toMatchObject({ state: 'failed', end: 'cut', output: true });
  expect(usageOf(own)).toEqual({ second: 4n, call: 1n });
  const far = await look({ jobs, givenUp: TOO_LARGE, notes: { dialledIn: true } });
  expect(far).toMatchObject({ observation: { state: 'failed', end: 'free' }, ends: [{ error: TOO_LARGE }] });
  const broken = await look({ jobs, givenUp: { code: 'broken_file', message: 'no film' } });
  expect(broken.observation).toMatchObject({ end: 'free' });
});

test('a file that is too large is charged together with one that is here', async () => {
  const both = (await look({ jobs: ['completed', 'completed'], here: [0], givenUp: TOO_LARGE })).observation;
  expect([both, usageOf(both)]).toMatchObject([
    { state: 'completed', end: 'complete' },
    { second: 8n, call: 2n },
  ]);
});
