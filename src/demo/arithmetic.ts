/**
 * Finds an arithmetic expression in a text (`12 + 3 * (4 - 1)`, `add 2, 3 and 4`) and computes it. Returns null if the
 * text has no such expression.
 */
export function solve(text: string): { readonly question: string; readonly result: string } | null {
  const list =
    /\b(?:add|sum(?: of)?|plus|total of)\b[^\d-]*(-?[\d.,\s]*\d(?:\s*(?:,|and|\+|plus)\s*-?\d[\d.]*)*)/i.exec(
      text,
    )?.[1];
  const numbers = list?.match(/-?\d+(?:\.\d+)?/g);
  if (numbers !== undefined && numbers !== null && numbers.length > 1) return solved(numbers.join(' + '));
  const expression = /[-(\d][\d\s.+\-*/×÷x()^]*[\d)]/i.exec(
    text
      .replaceAll(/\btimes\b/gi, '×')
      .replaceAll(/\bplus\b/gi, '+')
      .replaceAll(/\bminus\b/gi, '-')
      .replaceAll(/\bdivided by\b/gi, '/'),
  )?.[0];
  return expression !== undefined && /\d[\s)]*[+\-*/×÷x]/i.test(expression) ? solved(expression.trim()) : null;
}

function solved(question: string): { question: string; result: string } | null {
  const tokens = question.match(/\d+(?:\.\d+)?|[-+*/×÷x()]/gi) ?? [];
  if (tokens.length > 200) return null;
  let at = 0;
  const sum = (): number => {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-')
      value = tokens[at++] === '+' ? value + product() : value - product();
    return value;
  };
  const product = (): number => {
    let value = atom();
    while (/^[*/×÷x]$/i.test(tokens[at] ?? ''))
      value = /[/÷]/.test(tokens[at++] ?? '') ? value / atom() : value * atom();
    return value;
  };
  const atom = (): number => {
    const token = tokens[at++];
    if (token === '-') return -atom();
    if (token !== '(') return Number(token);
    const value = sum();
    return tokens[at++] === ')' ? value : NaN;
  };
  const value = sum();
  if (at !== tokens.length || Number.isNaN(value)) return null;
  return {
    question,
    result: Number.isFinite(value)
      ? String(Number(value.toPrecision(12)))
      : 'not a number: there is a division by zero in it',
  };
}
