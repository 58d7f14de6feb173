import { hash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { DOCUMENTED, DOCUMENTED_USD } from '#http';
import { FEES, formatUsd, OPERATOR_TREASURY } from '#billing';
import { LOSSES, type TreasuryAct, type NewAct } from '#chains';
import { requireFunds, termsOf, type Funds } from '#payments/on-chains';
import {
  amountOf,
  amountProperties,
  documentedUsd,
  eitherAmount,
  parseUsdField,
  type AmountBody,
} from '../account/body-fields.ts';
import { addressField, networkField, iso, maybe, text } from './fund-views.ts';
import { fundPageSchema, ADMINISTRATION, dataOf, pageOf, readPage, type FundPage } from '../route-schemas.ts';
import { withdrawalError } from './withdrawals-routes.ts';

const BEARERS = { losses: LOSSES, fees: FEES, operator: OPERATOR_TREASURY } as const;
type BearerName = keyof typeof BEARERS;

const maybeMicro = (description: string) =>
  ({ type: ['integer', 'null'], description: `Micro-USD. ${description}` }) as const;

const actProperties = {
  id: text('Of the act'),
  kind: {
    type: 'string',
    enum: ['write_off', 'write_up', 'make_good', 'move'],
    description:
      '`write_off`: a treasury holds less than the books say. `write_up`: it holds more. `make_good`: a loss is paid for. `move`: from a treasury to another',
  },
  status: {
    type: 'string',
    enum: ['pending', 'sending', 'sent', 'done', 'refused'],
    description: '`sending`: leaves its treasury. `sent`: has left it for good, and has not arrived',
  },
  network: maybe('CAIP-2; null for what concerns no chain'),
  amount_micro_usdc: { type: 'integer', description: 'Micro-USD' },
  amount_usd: text('The same as a decimal'),
  borne_by: { type: ['string', 'null'], enum: ['losses', 'fees', 'operator', null], description: 'null for moves' },
  to_network: maybe('Of a move'),
  address: maybe('That is paid'),
  sender: maybe('Address that it will come from'),
  deposit: maybe('Id of the deposit that it arrived as'),
  arrived_micro_usdc: maybeMicro('What arrived'),
  fee_micro_usdc: maybeMicro('What was kept on the way; it is a loss'),
  fee_usd: maybe('The same as a decimal'),
  reference: text('Your name of it'),
  reason: maybe('Why it was refused, or what it waits for'),
  created_at: text('RFC 3339'),
  updated_at: text('RFC 3339'),
} as const;
const actSchema = {
  title: 'TreasuryAct',
  type: 'object',
  required: Object.keys(actProperties),
  properties: actProperties,
} as const;

const STATUS = {
  requested: 'pending',
  agreed: 'pending',
  sending: 'sending',
  sent: 'sent',
  done: 'done',
  refused: 'refused',
} as const satisfies Record<TreasuryAct['state'], string>;

function viewAct(act: TreasuryAct) {
  const bearer = Object.entries(BEARERS).find(([, account]) => account === act.bearer)?.[0] ?? null;
  return {
    id: act.id,
    kind: act.kind,
    status: STATUS[act.state],
    network: act.network === '' ? null : act.network,
    amount_micro_usdc: Number(act.amount),
    amount_usd: formatUsd(act.amount),
    borne_by: bearer,
    to_network: act.toNetwork,
    address: act.address,
    sender: act.sender,
    deposit: act.deposit,
    arrived_micro_usdc: act.arrived === null ? null : Number(act.arrived),
    fee_micro_usdc: act.arrived === null ? null : Number(act.amount - act.arrived),
    fee_usd: act.arrived === null ? null : formatUsd(act.amount - act.arrived),
    reference: act.reference,
    reason: act.reason,
    created_at: iso(act.createdAt),
    updated_at: iso(act.updatedAt),
  };
}

interface ActBody extends AmountBody {
  readonly reference: string;
}

const reference = {
  type: 'string',
  minLength: 1,
  maxLength: 128,
  description:
    'Your name for this act. It counts once: a repetition changes nothing, and a repetition with other values is refused.',
} as const;
const network = networkField('CAIP-2, one of `/payments`.');

export function addTreasuryRoutes(app: FastifyInstance, funds: Funds | null): void {
  addReading(app, funds);
  addLosses(app, funds);
  addMoves(app, funds);
}

type ActRequest = Pick<NewAct, 'kind' | 'amount'> & Partial<NewAct>;

/** Requests an act. Rejects with GatewayError, also if the act itself is refused. */
async function request(funds: Funds | null, name: string, act: ActRequest): Promise<ReturnType<typeof viewAct>> {
  const { acts } = requireFunds(funds).chains;
  const none = { network: '', bearer: null, toNetwork: null, address: null, sender: null, feeMax: 0n };
  return answer(acts.request({ ...none, ...act, id: hash('sha256', `treasury ${name}`), reference: name }));
}

const explained = (doing: Promise<TreasuryAct>): Promise<TreasuryAct> =>
  doing.catch((error: unknown) => {
    throw withdrawalError(error);
  });

async function answer(doing: Promise<TreasuryAct>): Promise<ReturnType<typeof viewAct>> {
  const act = await explained(doing);
  if (act.state === 'refused') throw new GatewayError('unprocessable', `Nothing was booked. ${act.reason}`);
  return viewAct(act);
}

function addReading(app: FastifyInstance, funds: Funds | null): void {
  app.get<{ Querystring: FundPage }>(
    '/treasury/acts',
    {
      schema: {
        summary: 'List what was done with treasuries',
        description: 'The newest first: losses, and moves between treasuries.',
        ...ADMINISTRATION,
        querystring: fundPageSchema,
        response: { 200: pageOf(actSchema) },
      },
    },
    async ({ query }) => {
      const { actRows } = requireFunds(funds).chains;
      const page = await readPage(query, actRows.find, actRows.list);
      return { data: page.entries.map(viewAct), next: page.next };
    },
  );
}

function addLosses(app: FastifyInstance, funds: Funds | null): void {
  app.post<{ Body: ActBody & { readonly network: string; readonly borne_by?: BearerName; readonly more?: boolean } }>(
    '/treasury/differences',
    {
      schema: {
        summary: 'Book a difference',
        description:
          'For a treasury that permanently holds less than the books say. The books are set to what it holds, and `borne_by` bears the difference. Then withdrawals continue. The amount must be the difference that a comparison shows now.',
        ...ADMINISTRATION,
        body: {
          type: 'object',
          required: ['network', 'reference'],
          additionalProperties: false,
          examples: [{ network: 'eip155:8453', amount_usd: '25', reference: 'incident-4' }],
          [DOCUMENTED]: {
            allOf: [
              ...eitherAmount[DOCUMENTED].allOf,
              { not: { required: ['borne_by', 'more'], properties: { more: { enum: [true] } } } },
            ],
          },
          properties: {
            network,
            ...amountProperties,
            borne_by: {
              type: 'string',
              enum: Object.keys(BEARERS),
              description:
                '`losses` (the default): a loss to pay back later. `fees`: the fees that you earned. `operator`: money of your own.',
            },
            more: {
              type: 'boolean',
              default: false,
              description: 'The treasury holds more than the books say, and the difference is yours. Omit `borne_by`.',
            },
            reference,
          },
        },
        response: { 201: dataOf(actSchema) },
      },
    },
    async ({ body }, reply) => {
      const { network } = termsOf(requireFunds(funds), body.network);
      const more = body.more === true;
      if (more && body.borne_by !== undefined)
        throw new GatewayError('invalid_request', 'borne_by is only for a shortfall. Omit it with more', {
          param: 'borne_by',
        });
      const kind = more ? 'write_up' : 'write_off';
      const bearer = more ? OPERATOR_TREASURY : BEARERS[body.borne_by ?? 'losses'];
      const data = await request(funds, body.reference, { kind, network, amount: amountOf(body), bearer });
      return reply.code(201).send({ data });
    },
  );

  app.post<{ Body: ActBody & { readonly paid_by: Exclude<BearerName, 'losses'> } }>(
    '/treasury/losses/made-good',
    {
      schema: {
        summary: 'Make losses good',
        description:
          'Pays for losses: with fees that you earned, or with money of your own. Money of your own is a plain transfer to a treasury that was attributed to `tollgate:operator`.',
        ...ADMINISTRATION,
        body: {
          type: 'object',
          required: ['paid_by', 'reference'],
          additionalProperties: false,
          examples: [{ amount_usd: '25', paid_by: 'fees', reference: 'incident-4 paid' }],
          ...eitherAmount,
          properties: { ...amountProperties, paid_by: { type: 'string', enum: ['fees', 'operator'] }, reference },
        },
        response: { 201: dataOf(actSchema) },
      },
    },
    async ({ body }, reply) => {
      const act = { kind: 'make_good', amount: amountOf(body), bearer: BEARERS[body.paid_by] } as const;
      return reply.code(201).send({ data: await request(funds, body.reference, act) });
    },
  );
}

interface MoveBody extends ActBody {
  readonly network: string;
  readonly to_network: string;
  readonly address: string;
  readonly sender?: string;
  readonly fee_max_usd?: number | string;
}

const actId = { type: 'object', required: ['id'], properties: { id: { type: 'string', maxLength: 128 } } } as const;

function addMoves(app: FastifyInstance, funds: Funds | null): void {
  app.post<{ Body: MoveBody }>(
    '/treasury/moves',
    {
      schema: {
        summary: 'Move money between treasuries',
        description:
          'Sends money of a treasury to an address of yours (`move_to` in the configuration), from which you bring it to another treasury. The books record the move before the chain does, so withdrawals are not halted. A deposit from `sender` is recognised as the arrival. For any other sender use `/arrival`.',
        ...ADMINISTRATION,
        body: {
          type: 'object',
          required: ['network', 'to_network', 'address', 'reference'],
          additionalProperties: false,
          examples: [
            {
              network: 'eip155:8453',
              to_network: 'eip155:1',
              address: '0x71C7656EC7ab88b098defB751B7401B5f6d8976F',
              amount_usd: '500',
              reference: 'm1',
            },
          ],
          ...eitherAmount,
          properties: {
            network,
            to_network: network,
            address: addressField('One of `move_to` of the first network.'),
            ...amountProperties,
            sender: addressField('Address that it comes from on the other network.'),
            fee_max_usd: {
              anyOf: [
                { type: 'number', [DOCUMENTED]: documentedUsd },
                { type: 'string', maxLength: 40, [DOCUMENTED]: { pattern: DOCUMENTED_USD.pattern } },
              ],
              description: 'Most that may be missing when it arrives. Default 0.',
            },
            reference,
          },
        },
        response: { 201: dataOf(actSchema) },
      },
    },
    async ({ body }, reply) => {
      const known = requireFunds(funds);
      const data = await request(known, body.reference, {
        kind: 'move',
        network: termsOf(known, body.network).network,
        toNetwork: termsOf(known, body.to_network).network,
        amount: amountOf(body),
        address: body.address,
        sender: body.sender ?? null,
        feeMax: body.fee_max_usd === undefined ? 0n : parseUsdField(body.fee_max_usd, 'fee_max_usd'),
      });
      return reply.code(201).send({ data });
    },
  );

  app.post<{ Params: { readonly id: string } }>(
    '/treasury/acts/:id/cancel',
    {
      schema: {
        summary: 'Cancel an act',
        description:
          'Takes back a move that its treasury has not signed yet, or another act that is not booked yet: it is `refused` then, with the reason `Canceled`. A move that is given back for another reason keeps that reason. 422 where it is too late. Repeating it is safe.',
        ...ADMINISTRATION,
        params: actId,
        response: { 200: dataOf(actSchema) },
      },
    },
    async ({ params }) => ({ data: viewAct(await explained(requireFunds(funds).chains.acts.cancel(params.id))) }),
  );

  app.post<{ Params: { readonly id: string }; Body: { readonly deposit: string } }>(
    '/treasury/moves/:id/arrival',
    {
      schema: {
        summary: 'Name the deposit of a move',
        description: 'Names the deposit in suspense that is the money of a move. A missing amount is a loss.',
        ...ADMINISTRATION,
        params: actId,
        body: {
          type: 'object',
          required: ['deposit'],
          additionalProperties: false,
          properties: { deposit: { type: 'string', maxLength: 512, description: 'Its id, of `GET /deposits`.' } },
          examples: [{ deposit: 'eip155:8453:0x…' }],
        },
        response: { 200: dataOf(actSchema) },
      },
    },
    async ({ params, body }) => ({
      data: await answer(requireFunds(funds).chains.acts.arrived(params.id, body.deposit)),
    }),
  );
}
