import { createHash, randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { picture, type Tile } from './h264.ts';
import { toMp4 } from './mp4.ts';
import { isObject, RequestError } from './request.ts';
import { seedOf } from './seed.ts';

/** A requested video. */
interface Job {
  readonly id: string;
  readonly prompt: string;
  readonly seed: number;
  readonly seconds: number;
  readonly width: number;
  readonly height: number;
  readonly createdAt: number;
}

/** Answers `/v1/videos` and the paths below it. Resolves to false if the path or the video doesn't exist. */
export type Projector = (
  method: string,
  path: string,
  body: () => Promise<unknown>,
  response: ServerResponse,
) => Promise<boolean>;

const SECONDS_MAX = 10;
const EDGE_MAX = 1920;
const JOBS_MAX = 100;
const RATE = 5;
/** Milliseconds in the queue, then in progress. The delay is made up, so that clients can show their progress bars. */
const WAITS_MS = 300;
const FILMS_MS = 1_200;

/** A video API. Each video is a tollgate whose bar opens while the sun rises. The file is made when it is fetched. */
export function createProjector(now: () => number): Projector {
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
  const { prompt, seconds = '2', size = '854x480', seed } = body;
  if (typeof prompt !== 'string' || prompt === '') throw new RequestError('prompt must be a text.', 'prompt');
  const length = Number(seconds);
  if (!Number.isInteger(length) || length < 1 || length > SECONDS_MAX)
    throw new RequestError(`seconds must be 1 to ${SECONDS_MAX}.`, 'seconds');
  const edges = /^(\d{2,4})x(\d{2,4})$/.exec(String(size));
  const [width, height] = [Number(edges?.[1]), Number(edges?.[2])];
  if (!(width >= 64 && height >= 64 && width <= EDGE_MAX && height <= EDGE_MAX && width % 2 === 0 && height % 2 === 0))
    throw new RequestError('size must be written like 1280x720, with even numbers.', 'size');
  const id = `video_${randomUUID().replaceAll('-', '')}`;
  return { id, prompt, seed: seedOf(seed), seconds: length, width, height, createdAt };
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

function filmOf({ prompt, seed, seconds, width, height }: Job): Buffer {
  const chance = createHash('sha256')
    .update(JSON.stringify([prompt, seed]))
    .digest();
  const [columns, rows] = [Math.ceil(width / 16), Math.ceil(height / 16)];
  const count = seconds * RATE;
  const pictures = Array.from({ length: count }, (_, index) => {
    const scene = sceneAt(columns, rows, index / Math.max(1, count - 1), chance);
    const tiles = Array.from({ length: columns * rows }, (_tile, at) => scene(at % columns, Math.floor(at / columns)));
    return picture({ columns, rows, tiles }, index);
  });
  return toMp4({ width, height, rate: RATE, pictures });
}

const SUN: Tile = [220, 40, 150];
const WHITE: Tile = [230, 128, 128];
const RED: Tile = [90, 100, 220];
const BOOTH: Tile = [60, 130, 126];

/** Returns a function that gives the colour of each tile. `moment` is the place in the film, from 0 to 1. */
function sceneAt(columns: number, rows: number, moment: number, chance: Buffer) {
  const of = (index: number) => chance[index]! / 255;
  const edge = Math.min(columns, rows);
  const sun = { x: columns * (0.25 + 0.5 * of(0)), y: rows * (0.75 - 0.55 * moment), r: edge * (0.08 + 0.06 * of(1)) };
  const sky = 40 + 130 * moment;
  const warm = Math.round(20 + 30 * of(2)) * (1 - Math.abs(2 * moment - 1));
  const hill = (x: number) => rows * (0.66 + 0.06 * Math.sin((x / columns) * (4 + 4 * of(3)) + 6 * of(4)));
  const booth = { x: columns * 0.16, top: rows * 0.56, wide: Math.max(1, columns * 0.07) };
  const angle = (Math.PI / 2.2) * moment;
  const length = columns * 0.5;
  return (x: number, y: number): Tile => {
    if (x >= booth.x && x <= booth.x + booth.wide && y >= booth.top) return BOOTH;
    const [dx, dy] = [x - booth.x - booth.wide, rows * 0.7 - y];
    const along = dx * Math.cos(angle) + dy * Math.sin(angle);
    const beside = Math.abs(dy * Math.cos(angle) - dx * Math.sin(angle));
    if (along >= 0 && along <= length && beside <= 0.6) return Math.floor(along / 3) % 2 === 0 ? RED : WHITE;
    if (y >= hill(x)) return [Math.round(50 + 40 * moment + (y - hill(x)) * 2), 110, 112];
    if ((x - sun.x) ** 2 + (y - sun.y) ** 2 <= sun.r ** 2) return SUN;
    const low = y / rows;
    return [Math.round(sky + 40 * low), Math.round(150 - warm * low), Math.round(118 + warm * low)];
  };
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
