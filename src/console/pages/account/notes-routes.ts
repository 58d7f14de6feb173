import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { administratorOf } from '#auth/keys';
import type { AccountNote, NoteStore } from '#accounts';
import { ADMINISTRATION, dataOf, listOf, objectOf, pageSchema, titled, type PageRange } from '../route-schemas.ts';
import { accountParams, findAccount, type AccountParams, type AdminAccountsDeps } from './admin-accounts.ts';

export interface NotesDeps {
  readonly notes: NoteStore;
}

const noteSchema = titled(
  'AccountNote',
  objectOf({
    id: { type: 'string' },
    at: { type: 'string' },
    by: {
      type: 'string',
      description: 'Label of the admin key, or the id of the administrator; `root` is TOLLGATE_ADMIN_KEY.',
    },
    text: { type: 'string' },
  }),
);
const NOTES = '/accounts/:id/notes';
const CREDIT = { adminRole: 'credit' } as const;

const viewNote = ({ id, at, administrator, text }: AccountNote) => ({
  id,
  at: new Date(at).toISOString(),
  by: administrator,
  text,
});

/** Adds the routes for what the operator's people write about an account. Its owner does not see it. */
export function addNotesRoutes(app: FastifyInstance, deps: AdminAccountsDeps & NotesDeps): void {
  const listed = {
    ...ADMINISTRATION,
    summary: 'List the notes on an account',
    operationId: 'listNotesOfAnAccount',
    description: "What the operator's people wrote about the account, the newest first. Its owner does not see them.",
    params: accountParams,
    querystring: pageSchema,
    response: { 200: listOf(noteSchema) },
  };
  app.get<{ Params: AccountParams; Querystring: PageRange }>(NOTES, { schema: listed }, async ({ params, query }) => {
    const { account } = await findAccount(params.id, deps);
    return { data: (await deps.notes.list(account, query)).map(viewNote) };
  });
  const added = {
    ...ADMINISTRATION,
    summary: 'Write a note on an account',
    operationId: 'addNoteToAnAccount',
    description: 'The note has the name of the admin key and the time.',
    params: accountParams,
    body: {
      title: 'NewNote',
      type: 'object',
      additionalProperties: false,
      examples: [{ text: 'Asked for a higher rate from December on.' }],
      required: ['text'],
      properties: { text: { type: 'string', minLength: 1, maxLength: 2_000, pattern: '\\S' } },
    },
    response: { 201: dataOf(noteSchema) },
  };
  app.post<{ Params: AccountParams; Body: { readonly text: string } }>(
    NOTES,
    { schema: added, config: { ...CREDIT, logsNoBody: true } },
    async (request, reply) => {
      const { account } = await findAccount(request.params.id, deps);
      const note = await deps.notes.add(account, nameOf(request), request.body.text.trim());
      return reply.code(201).send({ data: viewNote(note) });
    },
  );
  const removed = {
    ...ADMINISTRATION,
    summary: 'Delete a note on an account',
    operationId: 'deleteNoteOfAnAccount',
    description: 'The log of changes keeps that it was deleted.',
    params: objectOf({ ...accountParams.properties, note: { type: 'string', maxLength: 64, description: 'Its id.' } }),
    response: { 200: dataOf(objectOf({ id: { type: 'string' } })) },
  };
  app.delete<{ Params: AccountParams & { readonly note: string } }>(
    `${NOTES}/:note`,
    { schema: removed, config: CREDIT },
    async ({ params }) => {
      const { account } = await findAccount(params.id, deps);
      if (!(await deps.notes.delete(account, params.note)))
        throw new GatewayError('not_found', 'The account has no note with this id', { param: 'note' });
      return { data: { id: params.note } };
    },
  );
}

const nameOf = ({ raw }: FastifyRequest): string => administratorOf(raw)?.id ?? 'root';
