from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.operator import Operator


@pytest.fixture
def operator(engine: Engine, tmp_path: Path) -> Operator:
    return Operator(engine, tmp_path)
