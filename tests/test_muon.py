"""Muon against PyTorch's, the paper's equation in float64, and PyTorch's AdamW."""

import numpy as np
import pytest
import torch

from core.model.config import Config
from core.model.transformer import Transformer
from core.train.muon import Muon, matrix_heights, orthogonalise

SHAPES = [(8, 8), (24, 16), (16, 24), (1, 9), (48, 16)]


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_muon_iteration_is_odd_polynomial_of_singular_values(shape):
    """The reference is a float64 SVD: U f(f(…S…)) Vᵀ with f(s) = a·s + b·s³ + c·s⁵.

    It starts from s / ‖S‖.
    """
    x = numbers(*shape).double()
    u, s, vt = np.linalg.svd(x.numpy(), full_matrices=False)
    s = s / np.sqrt((s**2).sum())
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    np.testing.assert_allclose(orthogonalise(x).numpy(), (u * s) @ vt, atol=1e-10)
    np.testing.assert_allclose(orthogonalise(x.float()).numpy(), (u * s) @ vt, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_muon_step_matches_pytorch(shape):
    """PyTorch iterates in bfloat16, so updates agree to two digits; all else agrees exactly."""
    ours, theirs = (torch.nn.Parameter(numbers(*shape)) for _ in range(2))
    optimiser = Muon([ours], [(shape[0],)], 0.02, 0.1)
    other = torch.optim.Muon(
        [theirs], lr=0.02, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    for step in range(6):
        ours.grad, theirs.grad = (numbers(*shape, seed=step + 9) for _ in range(2))
        optimiser.step()
        other.step()
    moved, expected = (
        item.detach() - numbers(*shape) * (1 - 0.02 * 0.1) ** 6 for item in (ours, theirs)
    )
    assert (moved - expected).norm() < 0.02 * expected.norm()
    torch.testing.assert_close(
        optimiser.state[ours]["momentum"], other.state[theirs]["momentum_buffer"]
    )


def test_everything_else_moves_as_under_pytorchs_adamw():
    shapes = [(5,), (7, 3)]
    ours, theirs = ([torch.nn.Parameter(numbers(*shape)) for shape in shapes] for _ in range(2))
    optimiser = Muon(ours, [(), ()], 0.01, 0.3)
    other = torch.optim.AdamW(theirs, lr=0.01, weight_decay=0.3)
    for step in range(8):
        for index, (a, b) in enumerate(zip(ours, theirs)):
            a.grad, b.grad = (numbers(*a.shape, seed=10 * step + index) for _ in range(2))
        optimiser.step()
        other.step()
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_stacked_matrices_are_orthogonalised_separately():
    full = torch.nn.Parameter(numbers(20, 8))
    parts = [torch.nn.Parameter(part.clone()) for part in numbers(20, 8).split([12, 4, 4])]
    stacked = Muon([full], [(12, 4, 4)], 0.02, 0.0)
    three = Muon(parts, [(12,), (4,), (4,)], 0.02, 0.0)
    full.grad = numbers(20, 8, seed=5)
    for part, gradient in zip(parts, full.grad.split([12, 4, 4])):
        part.grad = gradient.clone()
    stacked.step()
    three.step()
    torch.testing.assert_close(full, torch.cat(list(parts)))


def test_muon_takes_only_matrices_of_blocks():
    model = Transformer(
        Config(
            d_model=16,
            n_heads=4,
            n_kv_heads=2,
            activation="swiglu",
            qk_norm=True,
            position="learned",
        ),
        ["a", "b"],
    )
    heights = dict(zip([name for name, _ in model.named_parameters()], matrix_heights(model)))
    assert {name: height for name, height in heights.items() if height} == {
        "blocks.0.attn.qkv.weight": (16, 8, 8),
        "blocks.0.attn.out.weight": (16,),
        "blocks.0.mlp.w_in.weight": (64, 64),
        "blocks.0.mlp.w_out.weight": (16,),
    }
    assert {"embed", "position.weight", "unembed.weight", "blocks.0.attn.q_norm"} <= heights.keys()


def test_muon_direction_is_scale_free_when_squares_overflow():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(orthogonalise(1e30 * x), orthogonalise(x), atol=1e-5)
    both = orthogonalise(torch.stack([1e30 * x, x]))  # side by side
    assert torch.allclose(both[0], both[1], atol=1e-5)
