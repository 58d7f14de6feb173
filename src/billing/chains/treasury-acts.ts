import { formatUsd } from '#billing';
import { type TreasuryAct, type NewAct, HANDOVER_MOVE } from './act-rows.ts';
import { createActSteps, type ActStepsOptions } from './act-steps.ts';
import { ChainUnavailable, type Chain, type Incoming, plainAddress, WithdrawalProblem } from './chain.ts';
import { CANCELED } from './withdrawal-rows.ts';

interface TreasuryActsOptions extends ActStepsOptions {
  readonly chainOf: (network: string) => Chain | null;
  /** Addresses to which money of a treasury may be moved. */
  readonly moveToOf: (network: string) => readonly string[];
}

/** The operator's acts about treasuries. Each act is stored before anything happens, and executed once. */
export interface TreasuryActs {
  /**
   * Stores an act and makes all steps that are possible now. A repeated request with the same id and the same values
   * resolves with the stored act. A chain that does not answer is asked again later. Rejects with WithdrawalProblem; a
   * fault that shows later is in the act's reason.
   */
  request(request: NewAct): Promise<TreasuryAct>;
  /** Stores an act of the gateway itself, without checks, and begins it. */
  begin(act: NewAct): Promise<void>;
  /**
   * Names the deposit, which must be in suspense, as which a move arrived. It may be repeated. Rejects with
   * WithdrawalProblem.
   */
  arrived(id: string, deposit: string): Promise<TreasuryAct>;
  /**
   * Cancels a move that is not signed yet, or another act that is not booked yet. Resolves with the refused act. It may
   * be repeated. Rejects with WithdrawalProblem, also if it is too late.
   */
  cancel(id: string): Promise<TreasuryAct>;
  /** Makes all steps that are possible now for the unfinished acts, except for acts that wait for a comparison. */
  carryOn(): Promise<void>;
  /** The same for acts that wait for a comparison of this network, which takes seconds. */
  carryOnDifference(network: string): Promise<void>;
  /** Whether a transfer into a treasury is the arrival of a move. If so, the deposit is linked to the move. */
  isArrival(event: Incoming, network: string, deposit: string): Promise<boolean>;
}

const SAME = ['kind', 'network', 'amount', 'bearer', 'toNetwork', 'address', 'sender', 'feeMax'] as const;
const wrong = (message: string, param?: string) => new WithdrawalProblem('invalid_request', message, param);

const waitsForComparison = ({ kind, state }: TreasuryAct): boolean =>
  state === 'requested' && (kind === 'write_off' || kind === 'write_up');

export function createTreasuryActs(options: TreasuryActsOptions): TreasuryActs {
  const { rows, chainOf, withdrawals, onProblem } = options;
  const { advance, refuse } = createActSteps(options);

  const check = async (act: NewAct): Promise<void> => {
    const { kind, network, address, amount } = act;
    if (kind === 'make_good') return;
    const chain = chainOf(network);
    if (chain === null)
      throw new WithdrawalProblem('service_unavailable', `${network} cannot be reached at the moment. Retry later`);
    if (kind !== 'move') return;
    const fault = chain.addressFault(address!);
    if (fault !== null) throw wrong(fault, 'address');
    const allowed = options.moveToOf(network).map((one) => plainAddress(network, one));
    if (!allowed.includes(plainAddress(network, address!)))
      throw wrong(`${address} is not in move_to of ${network}: add it to the configuration`, 'address');
    // A larger move would wait for enough money and might then happen unexpectedly.
    const most = await withdrawals.uncommitted(network);
    if (amount > most)
      throw new WithdrawalProblem(
        'unprocessable',
        `The treasury of ${network} has ${formatUsd(most > 0n ? most : 0n)} USDC that no signed transaction will take. Move at most this amount`,
        'amount',
      );
  };

  const normal = (act: NewAct): NewAct => ({
    ...act,
    sender: act.sender === null ? null : plainAddress(act.toNetwork!, act.sender),
  });

  const carryOnAll = async (isMeant: (act: TreasuryAct) => boolean): Promise<void> => {
    let page = await rows.open(null);
    for (; page.length > 0; page = await rows.open(page.at(-1)!))
      for (const { id, network } of page.filter(isMeant)) {
        try {
          await advance(id);
        } catch (error) {
          if (!(error instanceof ChainUnavailable))
            onProblem('warn', 'an act about a treasury could not be continued; the gateway tries again', {
              network,
              error,
            });
        }
      }
  };

  const cancelMove = async ({ id, state }: TreasuryAct): Promise<void> => {
    if (id.startsWith(HANDOVER_MOVE))
      throw wrong('This move belongs to a treasury that hands over, which would make it again', 'id');
    // A move that is only stored is first advanced to a withdrawal. Then the row of the withdrawal decides whether it
    // is signed or canceled.
    if (state === 'requested') await advance(id);
    if ((await withdrawals.cancel(id)) !== null) return;
    // The withdrawal may already be on its way back for another reason, such as an address that its chain cannot pay.
    const withdrawal = await options.withdrawalRows.find(id);
    if (withdrawal?.state === 'returning') await withdrawals.carryOn(withdrawal);
  };

  const cancelBooking = async ({ id }: TreasuryAct): Promise<void> => {
    // Nothing is booked in this state, because a booking requires the state `agreed`.
    if (await rows.move(id, 'requested', 'refused', { reason: CANCELED })) return;
    const act = await rows.find(id);
    if (act?.state === 'agreed') await refuse(act);
  };

  return {
    async begin(act) {
      await rows.insert(normal(act));
      await advance(act.id);
    },

    async request(request) {
      const act = normal(request);
      if ((await rows.find(request.id)) === null) {
        await check(act);
        await rows.insert(act);
      }
      const known = await rows.find(request.id);
      if (known === null)
        throw new WithdrawalProblem(
          'unprocessable',
          'Another act about the same difference is not finished. Repeat that act, or see GET /admin/v1/treasury/acts',
        );
      if (SAME.some((key) => known[key] !== act[key]))
        throw new WithdrawalProblem(
          'idempotency_conflict',
          'This reference was already used for another act. Use a new one',
          'reference',
        );
      return advance(request.id).catch((error: unknown) => {
        if (!(error instanceof ChainUnavailable)) throw error;
        return known;
      });
    },

    async arrived(id, deposit) {
      const act = await rows.find(id);
      if (act?.kind !== 'move') throw wrong('There is no move with this id', 'id');
      if (act.deposit !== deposit) {
        const row = await options.depositRows.find(deposit);
        if (row?.state !== 'final' || row.account !== null || row.network !== act.toNetwork)
          throw wrong(`No deposit with this id is in suspense on ${act.toNetwork}`, 'deposit');
        if (row.credited! > act.amount)
          throw wrong(`It is more than the ${formatUsd(act.amount)} USDC that were sent`, 'deposit');
        if ((await rows.ofDeposit(deposit)) !== null || !(await rows.nameArrival(id, deposit)))
          throw wrong('This move has arrived already, or has not left, or the deposit is of another move', 'id');
      }
      return advance(id);
    },

    async cancel(id) {
      const act = await rows.find(id);
      if (act === null) throw wrong('There is no act with this id', 'id');
      if (act.state === 'refused') return act;
      await (act.kind === 'move' ? cancelMove(act) : cancelBooking(act));
      const now = await advance(id);
      if (now.state === 'refused') return now;
      const why = act.kind === 'move' ? 'its treasury has signed the move' : 'it is booked';
      throw new WithdrawalProblem('unprocessable', `It is too late: ${why}`);
    },

    carryOn: () => carryOnAll((act) => !waitsForComparison(act)),
    carryOnDifference: (network) => carryOnAll((act) => waitsForComparison(act) && act.network === network),

    isArrival: async ({ sender, amount }, network, deposit) =>
      (await rows.ofDeposit(deposit)) !== null ||
      (sender !== '' &&
        ((await rows.tieArrival(deposit, network, plainAddress(network, sender), amount)) ||
          // Another gateway may have linked it meanwhile.
          (await rows.ofDeposit(deposit)) !== null)),
  };
}
