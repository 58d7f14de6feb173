import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { isObject, RequestError } from './request.ts';

interface Job {
  readonly id: string;
  readonly seconds: number;
  readonly width: number;
  readonly height: number;
  readonly createdAt: number;
}

/** Answers `/v1/videos` and the paths below it. Resolves to false if the path or the video doesn't exist. */
export type VideoApi = (
  method: string,
  path: string,
  body: () => Promise<unknown>,
  response: ServerResponse,
) => Promise<boolean>;

const SECONDS_MAX = 10;
const EDGE_MAX = 1920;
const JOBS_MAX = 100;
/** Milliseconds in the queue, then in progress. The delay is made up, so that clients can show their progress bars. */
const WAITS_MS = 300;
const FILMS_MS = 1_200;

/**
 * A video API. Each video is the same film of a tollgate whose bar opens while the sun rises, in the size and length of
 * its job.
 */
export function createVideoApi(now: () => number): VideoApi {
  const jobs = new Map<string, Job>();
  return async (method, path, body, response) => {
    if (path === '/v1/videos' && method === 'POST') {
      const job = readJob(await body(), now());
      if (jobs.size >= JOBS_MAX) jobs.delete(jobs.keys().next().value!);
      jobs.set(job.id, job);
      send(response, 200, show(job, now()));
      return true;
    }
    const [, id = '', content] = /^\/v1\/videos\/([\w-]+)(\/content)?$/.exec(path) ?? [];
    const job = jobs.get(id);
    if (job === undefined) return false;
    if (method === 'DELETE') {
      jobs.delete(id);
      send(response, 200, { id, object: 'video.deleted', deleted: true });
    } else if (content === undefined) send(response, 200, show(job, now()));
    else {
      const film = filmOf(job);
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': film.length }).end(film);
    }
    return true;
  };
}

function readJob(body: unknown, createdAt: number): Job {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', null);
  const { prompt, seconds = '2', size = '854x480' } = body;
  if (typeof prompt !== 'string' || prompt === '') throw new RequestError('prompt must be a text.', 'prompt');
  const length = Number(seconds);
  if (!Number.isInteger(length) || length < 1 || length > SECONDS_MAX)
    throw new RequestError(`seconds must be 1 to ${SECONDS_MAX}.`, 'seconds');
  const edges = /^(\d{2,4})x(\d{2,4})$/.exec(String(size));
  const [width, height] = [Number(edges?.[1]), Number(edges?.[2])];
  if (!(width >= 64 && height >= 64 && width <= EDGE_MAX && height <= EDGE_MAX && width % 2 === 0 && height % 2 === 0))
    throw new RequestError('size must be written like 1280x720, with even numbers.', 'size');
  const id = `video_${randomUUID().replaceAll('-', '')}`;
  return { id, seconds: length, width, height, createdAt };
}

function show({ id, seconds, width, height, createdAt }: Job, at: number): object {
  const elapsed = at - createdAt;
  const progress = Math.max(0, Math.min(100, Math.round((100 * (elapsed - WAITS_MS)) / FILMS_MS)));
  const status = elapsed < WAITS_MS ? 'queued' : progress < 100 ? 'in_progress' : 'completed';
  const created = Math.floor(createdAt / 1000);
  return {
    id,
    object: 'video',
    status,
    progress,
    created_at: created,
    seconds: String(seconds),
    size: `${width}x${height}`,
  };
}

/** The sizes of the films in `fixtures`. */
const FILMS = [
  [854, 480],
  [480, 854],
  [480, 480],
  [1280, 720],
  [720, 1280],
  [720, 720],
] as const;
/** Units of time that a film plays for. */
const FILM_UNITS = 2_520;

/**
 * The film of the nearest shape and size. Its headers (ISO/IEC 14496-12) get the length of the job, as the number of
 * units in a second, and the job's size as the size in which players show it.
 */
function filmOf({ seconds, width, height }: Job): Buffer {
  const distance = ([filmWidth, filmHeight]: readonly [number, number]): number =>
    10 * Math.abs(Math.log((filmWidth * height) / (filmHeight * width))) +
    Math.abs(Math.log((filmWidth * filmHeight) / (width * height)));
  const [nearest] = FILMS.toSorted((a, b) => distance(a) - distance(b));
  const film = readFileSync(new URL(`./fixtures/tollgate-${nearest!.join('x')}.mp4`, import.meta.url));
  for (const header of ['mvhd', 'mdhd']) film.writeUInt32BE(FILM_UNITS / seconds, film.indexOf(header) + 16);
  const track = film.indexOf('tkhd');
  film.writeUInt32BE(width * 0x10000, track + 80);
  film.writeUInt32BE(height * 0x10000, track + 84);
  return film;
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
