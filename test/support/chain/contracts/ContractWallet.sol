// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// A wallet that is a contract (ERC-1271): its owner signs, and what comes after the 65 bytes of the signature is ignored. Without an owner it is what an
/// ordinary account delegates to (EIP-7702): the account itself signs.
contract ContractWallet {
    address public immutable owner;

    constructor(address owner_) {
        owner = owner_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length < 65) return 0xffffffff;
        (address signer, ECDSA.RecoverError fault,) = ECDSA.tryRecover(hash, bytes(signature[:65]));
        address expected = owner == address(0) ? address(this) : owner;
        return fault == ECDSA.RecoverError.NoError && signer == expected ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}
