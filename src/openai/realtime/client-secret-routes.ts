import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { servesRealtime } from '#config';
import { REALTIME_PATH } from '#config/model-kinds';
import { type ClientSecrets, requireAdmission } from '#auth';
import type { Catalog, Offer } from '#catalog';
import { authorise, type Pipeline } from '#call';
import { MUST_BE, nameSchema } from '#http';

interface ClientSecretDeps {
  readonly pipeline: Pick<Pipeline, 'admit' | 'lookUp'>;
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly clientSecrets: Pick<ClientSecrets, 'issue'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

interface ClientSecretBody {
  readonly session: { readonly model: string; readonly [field: string]: unknown };
  readonly expires_after?: { readonly anchor?: 'created_at'; readonly seconds?: number };
}

/** Seconds for which a secret opens sessions, as in OpenAI's API. */
const SECONDS = { least: 10, most: 7_200, usual: 600 };
const MS = 1_000;

const EXAMPLE = {
  session: { type: 'realtime', model: 'openai/gpt-realtime', instructions: 'Be brief.', max_output_tokens: 1024 },
};

const sessionSchema = {
  type: 'object',
  required: ['model'],
  additionalProperties: true,
  description:
    'The configuration of each session, with the members of `session.update`. A client can change it, but not `model`, and `max_output_tokens` only to less.',
  properties: {
    type: { const: 'realtime', description: 'Other sessions are not served.', [MUST_BE]: '"realtime"' },
    model: {
      ...nameSchema,
      description: 'The only model that the secret opens sessions of.',
      [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
    },
    instructions: { type: 'string', description: 'The user of the secret can read them.' },
    max_output_tokens: {
      anyOf: [{ type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }, { const: 'inf' }],
      description: 'The most tokens of one response, which no client can raise.',
      [MUST_BE]: 'a whole number above 0, or "inf"',
    },
  },
};

const body = {
  title: 'ClientSecretRequest',
  type: 'object',
  required: ['session'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ ...EXAMPLE, expires_after: { anchor: 'created_at', seconds: SECONDS.usual } }],
  properties: {
    session: { ...sessionSchema, [MUST_BE]: 'the configuration of the sessions: an object with model' },
    expires_after: {
      type: 'object',
      description: `When the secret stops opening sessions: by default after ${SECONDS.usual} seconds. Open sessions go on.`,
      properties: {
        anchor: { const: 'created_at', [MUST_BE]: '"created_at"' },
        seconds: {
          type: 'integer',
          minimum: SECONDS.least,
          maximum: SECONDS.most,
          [MUST_BE]: `a whole number from ${SECONDS.least} to ${SECONDS.most}`,
        },
      },
      [MUST_BE]: 'an object with anchor and seconds',
    },
  },
};

const answerSchema = {
  title: 'ClientSecret',
  type: 'object',
  required: ['value', 'expires_at', 'session'],
  properties: {
    value: { type: 'string', description: 'The secret. It is not shown again.' },
    expires_at: { type: 'integer', description: 'Epoch seconds.' },
    session: {
      type: 'object',
      required: ['id', 'object', 'type', 'model'],
      additionalProperties: true,
      description: 'The configuration as the provider will get it. A transcription of the input is left out.',
      properties: {
        id: { type: 'string' },
        object: { type: 'string', enum: ['realtime.session'] },
        type: { type: 'string', enum: ['realtime'] },
        model: { type: 'string' },
      },
    },
  },
};

/** `POST /realtime/client_secrets`, as in OpenAI's API. Register it under `/api/v1`. */
export function clientSecretRoutes(deps: ClientSecretDeps): FastifyPluginAsync {
  const { pipeline, catalog, clientSecrets, now } = deps;

  /** The offer by which the configuration is checked. Rejects with GatewayError, also for another kind of model. */
  async function offerOf(model: string, caller: Parameters<typeof authorise>[0]): Promise<Offer> {
    await pipeline.lookUp(model, 'model');
    const { service, offers } = catalog.resolve(model, 'model');
    authorise(caller, 'model', service);
    const { refuseOther } = await import('./open-session.ts');
    const offer = offers.find(({ model: facts }) => servesRealtime(facts!)) ?? offers[0]!;
    refuseOther(offer);
    return offer;
  }

  return async (app) => {
    // No run tokens, and no cookies: a secret would outlive the one, and be read by the page of the other.
    const admissionOf = requireAdmission(app, pipeline.admit, false, false);
    app.post<{ Body: ClientSecretBody }>(
      `${REALTIME_PATH}/client_secrets`,
      {
        schema: {
          summary: 'Create a secret for realtime sessions',
          operationId: 'createRealtimeClientSecret',
          description:
            'Gives a server a short-lived secret for a browser, which cannot keep an API key. It opens sessions at `/realtime` of one model, with the account, the limits and the budgets of the API key that made it, and nothing else. It counts for several sessions until it expires, and ends with its key, or when the text that made it is replaced.',
          tags: ['Audio'],
          body,
          response: { 200: answerSchema },
        },
        config: { clientsAppend: true },
      },
      async (request, reply) => {
        const { caller } = admissionOf(request);
        const { session: requestedSession, expires_after: after } = request.body;
        if (caller.key === null)
          throw new GatewayError(
            'permission_denied',
            'Only an API key makes client secrets, because they end with their key: send one as "Authorization: Bearer svc-sk-…"',
          );
        const { model } = requestedSession;
        const offer = await offerOf(model, caller);
        const [{ configRules }, { readSessionConfig }] = await Promise.all([
          import('./open-session.ts'),
          import('./client-events.ts'),
        ]);
        const { session } = readSessionConfig(requestedSession, configRules(offer, model));
        const seconds = Math.floor(now() / MS) + (after?.seconds ?? SECONDS.usual);
        const grant = { account: caller.account, secret: caller.key.secret ?? caller.key.hash, model, session };
        return reply.header('cache-control', 'no-store').send({
          value: clientSecrets.issue(grant, seconds * MS),
          expires_at: seconds,
          session: { id: `sess_${randomUUID().replaceAll('-', '')}`, object: 'realtime.session', ...session, model },
        });
      },
    );
  };
}
