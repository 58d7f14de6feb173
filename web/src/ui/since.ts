const STEPS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;
const DAYS_RELATIVE = 7;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sept', 'Oct', 'Nov', 'Dec'] as const;

/** A time relative to now: `3 hours ago`, `in 2 days`. More than a week away it is a date: `5 Sept 2026`. */
export function since(date: Date): string {
  const passed = date.getTime() - Date.now();
  const size = Math.abs(passed);
  if (size > DAYS_RELATIVE * 86_400_000) return `${date.getDate()} ${MONTHS[date.getMonth()]} ${date.getFullYear()}`;
  const [unit, ms] = STEPS.find(([, each]) => size >= each) ?? [];
  if (!unit) return 'now';
  const count = Math.round(size / ms);
  if (unit === 'day' && count === 1) return passed < 0 ? 'yesterday' : 'tomorrow';
  const words = `${count} ${unit}${count === 1 ? '' : 's'}`;
  return passed < 0 ? `${words} ago` : `in ${words}`;
}
