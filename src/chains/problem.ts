/** How soon the operator should look: `error` now, `warn` if the problem stays. */
type ProblemLevel = 'info' | 'warn' | 'error';

/** Called with a problem that an operator should look at. `of` has the details, and the `error` if one exists. */
export type OnProblem = (level: ProblemLevel, problem: string, of: Readonly<Record<string, unknown>>) => void;
