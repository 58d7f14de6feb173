import type { Act } from './act-rows.ts';
import type { ActSteps, ActStepsOptions } from './act-steps.ts';
import { HANDOVER_MOVE } from './handover-care.ts';
import { WithdrawalProblem } from './withdrawal-problem.ts';
import { CANCELED } from './withdrawals.ts';

const wrong = (message: string) => new WithdrawalProblem('invalid_request', message, 'id');

/** Creates `TreasuryActs.cancel`. */
export function createActCancel(
  options: Pick<ActStepsOptions, 'rows' | 'withdrawals' | 'withdrawalRows'>,
  { advance, refuse }: ActSteps,
): (id: string) => Promise<Act> {
  const { rows, withdrawals } = options;

  const cancelMove = async ({ id, state }: Act): Promise<void> => {
    if (id.startsWith(HANDOVER_MOVE))
      throw wrong('This move belongs to a treasury that hands over, which would make it again');
    // A move that is only stored is first advanced to a withdrawal. Then the row of the withdrawal decides whether it
    // is signed or canceled.
    if (state === 'requested') await advance(id);
    if ((await withdrawals.cancel(id)) !== null) return;
    // The withdrawal may already be on its way back for another reason, such as an address that its chain cannot pay.
    const withdrawal = await options.withdrawalRows.find(id);
    if (withdrawal?.state === 'returning') await withdrawals.carryOn(withdrawal);
  };

  const cancelBooking = async ({ id }: Act): Promise<void> => {
    // Nothing is booked in this state, because a booking requires the state `agreed`.
    if (await rows.move(id, 'requested', 'refused', { reason: CANCELED })) return;
    const act = await rows.find(id);
    if (act?.state === 'agreed') await refuse(act);
  };

  return async (id) => {
    const act = await rows.find(id);
    if (act === null) throw wrong('There is no act with this id');
    if (act.state === 'refused') return act;
    await (act.kind === 'move' ? cancelMove(act) : cancelBooking(act));
    const now = await advance(id);
    if (now.state === 'refused') return now;
    const why = act.kind === 'move' ? 'its treasury has signed the move' : 'it is booked';
    throw new WithdrawalProblem('unprocessable', `It is too late: ${why}`);
  };
}
