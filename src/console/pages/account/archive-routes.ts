import { isAbsolute } from 'node:path';
import type { FastifyPluginAsync } from 'fastify';
import type { AdminGate } from '#auth';
import type { RegisteredArchive } from '#billing';
import { GatewayError } from '#errors';
import { MUST_BE } from '#http';
import { documentedDay } from '../day-range.ts';
import { ADMINISTRATION, dataOf, objectOf, titled } from '../route-schemas.ts';

export interface AskedArchive {
  /** Epoch milliseconds: everything before it is archived. */
  readonly endsAt: number;
  /** null: the folder `archives` of the data directory. */
  readonly folder: string | null;
  readonly dryRun: boolean;
  readonly keep: boolean;
}

/** The last run of this process. `done` of `total` is how far its phase is. */
export interface ArchiveRunView {
  readonly state: 'running' | 'done' | 'failed';
  readonly ends_at: string;
  readonly phase: string;
  readonly done: number;
  readonly total: number;
  readonly error: string | null;
  readonly result: Readonly<Record<string, unknown>> | null;
}

export interface Archives {
  /** Begins an archive; `status` tells how far it is. Throws GatewayError if one is being made already. */
  start(request: AskedArchive): void;
  status(): Promise<{ readonly archives: readonly RegisteredArchive[]; readonly run: ArchiveRunView | null }>;
}

interface ArchiveRoutesDeps {
  readonly gate: AdminGate;
  readonly archives: Archives;
}

interface ArchiveBody {
  readonly before: string;
  readonly folder?: string;
  readonly dry_run: boolean;
  readonly keep: boolean;
}

const archiveSchema = objectOf({
  number: { type: 'integer' },
  name: { type: 'string' },
  folder: { type: 'string', description: 'Where it was written.' },
  begins_at: { type: ['string', 'null'], description: 'Its first moment; null for the beginning of the books.' },
  ends_at: { type: 'string', description: 'It has everything before this moment.' },
  calls: { type: 'integer' },
  charged_micro_usdc: { type: 'integer' },
  bytes: { type: 'integer' },
  sha256: { type: 'string', description: 'Of the file.' },
  made_at: { type: 'string' },
  dropped_at: { type: ['string', 'null'], description: 'null while its rows are being dropped.' },
});

const runSchema = {
  ...objectOf({
    state: { type: 'string', enum: ['running', 'done', 'failed'] },
    ends_at: { type: 'string' },
    phase: { type: 'string', description: '`finding`, `writing`, `verifying`, `registering` or `dropping`.' },
    done: { type: 'integer' },
    total: { type: 'integer' },
    error: { type: ['string', 'null'] },
    result: { type: ['object', 'null'], additionalProperties: true },
  }),
  type: ['object', 'null'],
  description: 'The last run of this process; null if there was none.',
};

const statusSchema = titled(
  'Archives',
  objectOf({ archives: { type: 'array', items: archiveSchema }, run: runSchema }),
);

/** The operator's routes for archives of the ledger. Register them under `/admin/v1`. */
export function archiveRoutes({ gate, archives }: ArchiveRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', gate);
    const status = async () => {
      const { archives: registered, run } = await archives.status();
      return { data: { archives: registered.map(viewArchive), run } };
    };
    const schema = {
      ...ADMINISTRATION,
      summary: 'List the archives of the ledger',
      operationId: 'listArchives',
      description: 'The archives whose calls are not in the database any more, and how far a run is.',
      response: { 200: dataOf(statusSchema) },
    };
    app.get('/archives', { schema }, status);

    const begin = {
      ...ADMINISTRATION,
      summary: 'Archive old calls',
      operationId: 'makeArchive',
      description:
        'Writes all calls and movements before a day into a signed file on the machine of the gateway, verifies it, and drops their rows. It goes on after the answer: `GET /archives` tells how far it is.',
      body: {
        type: 'object',
        required: ['before'],
        examples: [{ before: '2026-06-01' }],
        additionalProperties: false,
        properties: {
          before: {
            type: 'string',
            ...documentedDay,
            description: 'The first day that stays (UTC).',
            [MUST_BE]: 'a day, such as "2026-06-01"',
          },
          folder: {
            type: 'string',
            pattern: '^/',
            maxLength: 4096,
            description: 'Absolute path on the machine of the gateway; default: `archives` of its data directory.',
          },
          dry_run: { type: 'boolean', default: false, description: 'Only find out what would be archived.' },
          keep: { type: 'boolean', default: false, description: 'Write and verify the file, and drop nothing.' },
        },
      },
      response: { 202: { description: 'It has begun', ...dataOf(statusSchema) } },
    };
    app.post<{ Body: ArchiveBody }>('/archives', { schema: begin }, async ({ body }, reply) => {
      const { before, folder = null, dry_run: dryRun, keep } = body;
      if (folder !== null && !isAbsolute(folder))
        throw new GatewayError('invalid_request', `folder is not an absolute path: ${folder}`, { param: 'folder' });
      archives.start({ endsAt: Date.parse(`${before}T00:00:00Z`), folder, dryRun, keep });
      return reply.code(202).send(await status());
    });
  };
}

const time = (at: number) => new Date(at).toISOString();

const viewArchive = (archive: RegisteredArchive) => ({
  number: archive.number,
  name: archive.name,
  folder: archive.folder,
  begins_at: archive.beginsAt === 0 ? null : time(archive.beginsAt),
  ends_at: time(archive.endsAt),
  calls: archive.settled + archive.released + archive.expired,
  charged_micro_usdc: Number(archive.charged),
  bytes: archive.bytes,
  sha256: archive.sha256,
  made_at: time(archive.madeAt),
  dropped_at: archive.droppedAt === null ? null : time(archive.droppedAt),
});
