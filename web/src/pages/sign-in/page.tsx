import type { ReactNode } from 'react';
import { Heading } from '../../ui/heading.tsx';

export default function SignInPage(): ReactNode {
  return <Heading title="Sign in" lead="Sign in with a wallet or a key." />;
}
